//! Text in double quotes, escaped as JSON wants it.
//!
//! Most of what an answer weighs is text, and most text has nothing to escape: so it is looked through many bytes at a
//! time, long text in a loop that the compiler turns into vector instructions and names as a word or two, and copied in
//! one piece.

/// Bytes looked at together in long text, and in what is left of it: what all of them come to is asked once for each stride.
const LONG_STRIDE: usize = 128;
const STRIDE: usize = 32;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Text that fits two words with its quotes.
const SHORT: usize = 2 * WORD - 2;

/// Appends a quoted and escaped string.
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    if !write_if_plain(bytes, out) {
        write_escaped(bytes, out);
    }
}

/// The same for bytes that ought to be UTF-8; if they are not, writes nothing and says so.
pub(super) fn write_utf8(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    if write_if_plain(bytes, out) {
        return true;
    }
    let is_text = std::str::from_utf8(bytes).is_ok();
    if is_text {
        write_escaped(bytes, out);
    }
    is_text
}

/// Appends text in quotes if all of it stands for itself.
fn write_if_plain(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    if bytes.len() <= SHORT {
        return write_if_plain_short(bytes, out);
    }
    let is_plain = is_plain_ascii(bytes);
    if is_plain {
        write_plain(bytes, out);
    }
    is_plain
}

/// The same for at most [`SHORT`] bytes, as most names and many values have: they are put between quotes first, and looked at there
/// as two words.
fn write_if_plain_short(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    // Around the text, what passes.
    let mut quoted = [b' '; 2 * WORD];
    let Some(place) = quoted.get_mut(1..=bytes.len()) else { return false };
    copy_short(bytes, place);
    if !quoted.as_chunks::<WORD>().0.iter().all(is_plain_word) {
        return false;
    }
    let end = out.len() + bytes.len() + 2;
    for quote in [0, bytes.len() + 1] {
        if let Some(place) = quoted.get_mut(quote) {
            *place = b'"';
        }
    }
    // All of it: a number of bytes that is known beforehand takes two moves.
    out.extend_from_slice(&quoted);
    out.truncate(end);
    true
}

/// Copies a few bytes to as many, by their first and last ones: some twice, which is cheaper than to find out how many they are.
fn copy_short(from: &[u8], to: &mut [u8]) {
    if !copy_ends::<WORD>(from, to) && !copy_ends::<{ WORD / 2 }>(from, to) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
    }
}

/// Copies the first `N` bytes and the last; whether there are as many.
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let ends = (from.first_chunk::<N>(), from.last_chunk::<N>());
    let (Some(first), Some(last)) = ends else { return false };
    if let Some(start) = to.first_chunk_mut() {
        *start = *first;
    }
    if let Some(end) = to.last_chunk_mut() {
        *end = *last;
    }
    true
}

fn write_plain(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    out.extend_from_slice(bytes);
    out.push(b'"');
}

fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
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

/// Whether all bytes are ASCII and stand for themselves.
pub(crate) fn is_plain_ascii(bytes: &[u8]) -> bool {
    let (long, rest) = bytes.as_chunks::<LONG_STRIDE>();
    let (strides, rest) = rest.as_chunks::<STRIDE>();
    if !long.iter().all(|stride| is_plain_stride(stride))
        || !strides.iter().all(|stride| is_plain_stride(stride))
    {
        return false;
    }
    let (words, last) = rest.as_chunks::<WORD>();
    if !words.iter().all(is_plain_word) {
        return false;
    }
    // Some bytes of the last word are looked at twice, which is cheaper than each of the last ones by itself.
    match (rest.last_chunk::<WORD>(), rest.first_chunk(), rest.last_chunk()) {
        (Some(word), ..) => last.is_empty() || is_plain_word(word),
        (None, Some([a, b, c, d]), Some([e, f, g, h])) => is_plain_word(&[*a, *b, *c, *d, *e, *f, *g, *h]),
        _ => last.iter().all(|byte| other(*byte) == 0),
    }
}

/// Whether all bytes of a stride are. Without a way out in the middle, so that they are compared at once.
fn is_plain_stride(stride: &[u8]) -> bool {
    stride.iter().fold(0, |found, byte| found | other(*byte)) == 0
}

/// Not zero for a byte that is escaped or not ASCII. Nothing in it is a jump.
fn other(byte: u8) -> u8 {
    u8::from(is_escaped(byte)) | byte & 0x80
}

/// The same for a word, whose bytes are compared at once: what is found leaves its top bit in one of them.
fn is_plain_word(word: &[u8; WORD]) -> bool {
    let word = u64::from_le_bytes(*word);
    let each = |byte: u8| u64::from_le_bytes([byte; WORD]);
    let below = |word: u64, byte: u8| word.wrapping_sub(each(byte)) & !word;
    let equal = |byte: u8| below(word ^ each(byte), 1);
    (word | below(word, 0x20) | equal(b'"') | equal(b'\\')) & each(0x80) == 0
}

/// How many bytes stand for themselves, from the first on.
fn plain_len(bytes: &[u8]) -> usize {
    let (strides, _) = bytes.as_chunks::<STRIDE>();
    // Without a way out in the middle, as above.
    let is_plain =
        |stride: &&[u8; STRIDE]| !stride.iter().fold(false, |found, byte| found | is_escaped(*byte));
    let plain = strides.iter().take_while(is_plain).count() * STRIDE;
    let rest = bytes.get(plain..).unwrap_or_default();
    plain + rest.iter().position(|byte| is_escaped(*byte)).unwrap_or(rest.len())
}

fn is_escaped(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
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
    fn short_texts_of_every_length_are_written_as_serde_json_writes_them() {
        for len in 0..=SHORT + 2 {
            check(&"ab~ ".repeat(5)[..len]);
            for at in 0..len {
                for odd in ['"', '\\', '\n', '\u{1f}', '\u{7f}', '!', '#', '[', ']'] {
                    let text: String = (0..len).map(|n| if n == at { odd } else { 'x' }).collect();
                    check(&text);
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_leave_nothing() {
        for len in 0..LONG_STRIDE + 2 * STRIDE {
            let mut bytes = vec![b'x'; len];
            bytes.push(0xFF);
            let mut written = Vec::new();
            assert!(!write_utf8(&bytes, &mut written) && written.is_empty(), "{len}");
            assert!(write_utf8(&bytes[..len], &mut written) && written.len() == len + 2, "{len}");
        }
    }

    #[test]
    fn escapes_are_found_wherever_they_stand() {
        for len in 0..LONG_STRIDE + 3 * STRIDE {
            let plain = "é".repeat(len / 2) + &"x".repeat(len % 2);
            check(&plain);
            for escaped in ["\"", "\\", "\n", "\u{1F}"] {
                check(&format!("{plain}{escaped}"));
                check(&format!("{escaped}{plain}{escaped}{plain}"));
            }
        }
    }
}
