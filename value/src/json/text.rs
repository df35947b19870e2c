//! Text in double quotes, escaped as JSON wants it.
//!
//! Most of what an answer weighs is text, and most text has nothing to escape: so it is looked through many bytes at a
//! time, in a loop that the compiler turns into vector instructions, and copied in one piece.

/// Bytes looked at together.
const STRIDE: usize = 32;

/// Appends a quoted and escaped string.
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len() + 2);
    out.push(b'"');
    while let Some((plain, escaped)) = rest.split_at_checked(plain_len(rest)) {
        out.extend_from_slice(plain);
        let Some((byte, after)) = escaped.split_first() else { break };
        push_escape(*byte, out);
        rest = after;
    }
    out.push(b'"');
}

/// How many bytes stand for themselves, from the first on.
fn plain_len(bytes: &[u8]) -> usize {
    let (strides, _) = bytes.as_chunks::<STRIDE>();
    // Without a way out in the middle, so that all bytes of a stride are compared at once.
    let is_plain =
        |stride: &&[u8; STRIDE]| !stride.iter().fold(false, |found, byte| found | is_escaped(*byte));
    let plain = strides.iter().take_while(is_plain).count() * STRIDE;
    let rest = bytes.get(plain..).unwrap_or_default();
    plain + rest.iter().position(|byte| is_escaped(*byte)).unwrap_or(rest.len())
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        _ => {
            // Rare enough to be written the slow way.
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let mut written = Vec::new();
        write_str(text, &mut written);
        assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(text).unwrap());
    }

    #[test]
    fn every_character_is_written_as_serde_json_writes_it() {
        for byte in 0..=0xFF_u8 {
            check(&char::from(byte).to_string());
        }
        check("");
        check("\u{2028}\u{FFFD}\u{1F600}");
    }

    #[test]
    fn escapes_are_found_wherever_they_stand() {
        for len in 0..3 * STRIDE {
            let plain = "é".repeat(len / 2) + &"x".repeat(len % 2);
            check(&plain);
            for escaped in ["\"", "\\", "\n", "\u{1F}"] {
                check(&format!("{plain}{escaped}"));
                check(&format!("{escaped}{plain}{escaped}{plain}"));
            }
        }
    }
}
