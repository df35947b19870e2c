//! Bodies and texts, as SDKs and their tests look for them.

use super::*;
use proptest::prelude::*;

fn message_of(error: &ApiError) -> String {
    let body: serde_json::Value = serde_json::from_str(&error.to_body("a-b")).unwrap();
    assert_eq!(body["code"], error.code);
    body["message"].as_str().unwrap().into()
}

#[test]
fn the_gateway_adds_the_activity_id() {
    assert_eq!(
        ApiError::owner_not_found().to_body("0a-1b"),
        "{\"code\":\"NotFound\",\"message\":\"Owner resource does not exist\\r\\nActivityId: 0a-1b, \
         Microsoft.Azure.Documents.Common/2.14.0\"}"
    );
}

#[test]
fn ttl_errors_come_from_the_backend() {
    let message = message_of(&ApiError::invalid_ttl("0"));
    assert!(
        message.starts_with(
            "Message: {\"Errors\":[\"The input ttl '0' is invalid. Ensure to provide a nonzero positive integer \
             less than or equal to '2147483647', or '-1' which means never expire.\"]}\r\nActivityId: a-b, "
        ),
        "{message}"
    );
    assert!(message_of(&ApiError::invalid_default_ttl("null")).contains("The input defaultTtl 'null' is"));
    assert_eq!(ApiError::ttl_without_index().shape, Shape::Backend);
}

#[test]
fn texts_that_tests_and_users_look_for() {
    for (error, status, substatus, phrase) in [
        (ApiError::item_not_found(), 404, 0, "Entity with the specified id does not exist in the system."),
        (ApiError::item_not_found(), 404, 0, "Resource Not Found"),
        (ApiError::resource_not_found(), 404, 0, "https://aka.ms/cosmosdb-tsg-not-found"),
        (ApiError::owner_not_found(), 404, 1003, "Owner resource does not exist"),
        (ApiError::read_session_not_available(), 404, 1002, "read session is not available"),
        (ApiError::item_exists(), 409, 0, "Entity with the specified id already exists in the system."),
        (ApiError::resource_exists(), 409, 0, "Resource with specified id or name already exists."),
        (ApiError::unique_violation(), 409, 0, "Unique index constraint violation."),
        (ApiError::precondition_failed(), 412, 0, "one of the specified precondition is not met"),
        (ApiError::precondition_failed(), 412, 0, "One of the specified pre-condition is not met"),
        (ApiError::missing_properties(&["id"]), 400, 0, "required properties - 'id; ' - are missing"),
        (ApiError::id_length(255), 400, 0, "unique non-empty string less than '255' characters."),
        (ApiError::partition_key_mismatch(), 400, 1001, "doesn't match the one specified in the header"),
        (ApiError::partition_key_short(), 400, 1001, "defined in the the collection."),
        (ApiError::incorrect_container_rid(), 400, 1024, "rid"),
        (
            ApiError::cross_partition_not_servable(&serde_json::json!({})),
            400,
            1004,
            "first chance (internal) exception",
        ),
        (ApiError::method_not_allowed("PUT"), 405, 0, "PUT"),
        (ApiError::too_large(), 413, 0, "Request size is too large"),
        (ApiError::throttled(Duration::from_millis(37)), 429, 3200, "Request rate is large."),
        (ApiError::not_implemented("Attachments"), 501, 0, "Attachments is not implemented"),
    ] {
        assert_eq!((error.status, error.substatus), (status, substatus), "{error}");
        assert!(message_of(&error).contains(phrase), "{error}");
    }
}

#[test]
fn texts_have_no_seams_where_lines_were_broken() {
    for error in [
        ApiError::partition_key_shape(),
        ApiError::cross_partition_not_servable(&serde_json::json!({})),
        ApiError::cross_partition_disabled(),
        ApiError::batch_partition_keys(),
        ApiError::consistency_too_strong("Strong", "Session"),
        ApiError::invalid_ttl("0"),
        AuthError::WrongSignature { payload: String::new() }.into(),
        AuthError::NotValidNow { signed_at: 0, now: 0 }.into(),
    ] {
        assert!(!error.message.contains("  "), "{}", error.message);
    }
}

#[test]
fn refusals_of_signatures() {
    for (error, status, phrase) in [
        (AuthError::Missing, 401, "Required Header authorization is missing. Ensure a valid"),
        (AuthError::Malformed, 401, "Authorization header doesn't confirm to the required format."),
        (AuthError::NoDate, 401, "Authorization token mandates Date header."),
        (
            AuthError::Unsupported { kind: "aad" },
            401,
            "type 'aad' are not accepted by this server. Please sign with an account key, or start",
        ),
        (
            AuthError::WrongSignature { payload: "get\n\n\nnow\n\n".into() },
            401,
            "Server used the following payload to sign: 'get\\n\\n\\nnow\\n\\n'",
        ),
        (
            AuthError::NotValidNow { signed_at: 900, now: 3600 },
            403,
            "(token start time: Thu, 01 Jan 1970 00:00:00 GMT, token expiry time: Thu, 01 Jan 1970 00:30:00 \
             GMT, current server time: Thu, 01 Jan 1970 01:00:00 GMT).",
        ),
    ] {
        let error = ApiError::from(error);
        assert_eq!((error.status, error.substatus), (status, 0), "{error}");
        assert!(message_of(&error).contains(phrase), "{}", error.message);
    }
}

proptest! {
    #[test]
    fn any_message_makes_a_json_body(message in "\\PC*[\"\\\\\r\n\u{0}]?", id in "\\PC*") {
        for error in [ApiError::bad_request(message.clone()), ApiError::bad_request(message).backend()] {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&error.to_body(&id)).is_ok());
        }
    }
}
