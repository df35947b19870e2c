//! The portal's place on the port: `/_explorer/`, and the way there for a browser that asks for `/`.
//!
//! Locations are relative, so that they hold behind a proxy that adds a path in front.

use hyper::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use mayfly_cosmos::headers::Headers;
use mayfly_portal::Asset;

use crate::respond::{self, Body};

const FOLDER: &str = "/_explorer/";

/// The answer, if the path is the portal's or a browser's first request.
pub fn answer(path: &str, headers: &Headers<'_>) -> Option<Response<Body>> {
    match path {
        "/" if is_browser(headers) => Some(redirect("_explorer/")),
        "/_explorer" => Some(redirect("_explorer/")),
        _ => mayfly_portal::find(path.strip_prefix(FOLDER)?).map(|asset| file(asset, headers)),
    }
}

/// SDKs ask for the account document at `/` with a signature and never for HTML.
fn is_browser(headers: &Headers<'_>) -> bool {
    let accept = headers.get_text(&ACCEPT).unwrap_or_default();
    accept.contains("text/html") && !headers.contains(&AUTHORIZATION)
}

fn redirect(to: &'static str) -> Response<Body> {
    let mut response = respond::text(StatusCode::FOUND, "text/plain", "The portal is at /_explorer/\n");
    set(&mut response, LOCATION, to);
    response
}

fn file(asset: &'static Asset, headers: &Headers<'_>) -> Response<Body> {
    let etag = asset.etag();
    let known = headers.get_text(&IF_NONE_MATCH);
    let mut response = match known.is_some_and(|known| known.contains(&etag)) {
        true => Response::new(respond::empty()),
        false => Response::new(respond::full(asset.bytes)),
    };
    if known.is_some_and(|known| known.contains(&etag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        set(&mut response, CONTENT_TYPE, asset.content_type);
        if asset.is_gzip {
            set(&mut response, CONTENT_ENCODING, "gzip");
        }
    }
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    // Keep it, but ask: an upgraded server must not be seen through an old portal.
    set(&mut response, CACHE_CONTROL, "no-cache");
    set(&mut response, CONTENT_SECURITY_POLICY, mayfly_portal::CONTENT_SECURITY_POLICY);
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, REFERRER_POLICY, "no-referrer");
    response
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
