//! The plain parts of a key: byte strings that end by themselves, and big-endian numbers.

use super::KeycodeError;

/// Ends a byte string. Escaped zeros (00 FF) sort after it, so a prefix sorts first.
const TERMINATOR: u8 = 0x00;
/// Ends a byte string whose rest was left out; it sorts right after the string that really ends here.
const TERMINATOR_CUT: u8 = 0x01;
/// Stands for the zero byte itself.
const ESCAPED: u8 = 0xFF;

/// Appends bytes such that keys keep their order and another part can follow.
pub fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_escaped(out, bytes, false);
}

/// Appends a string like [`push_bytes`].
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    push_bytes(out, text.as_bytes());
}

/// Appends a number in 4 bytes, high byte first.
pub fn push_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a number in 8 bytes, high byte first.
pub fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Reads what [`push_bytes`] wrote; also tells how many bytes it took.
pub fn take_bytes(bytes: &[u8]) -> Result<(Vec<u8>, usize), KeycodeError> {
    let mut reader = Reader::new(bytes);
    let (content, _) = reader.escaped()?;
    Ok((content, reader.position))
}

/// Reads what [`push_str`] wrote; also tells how many bytes it took.
pub fn take_str(bytes: &[u8]) -> Result<(String, usize), KeycodeError> {
    let (content, taken) = take_bytes(bytes)?;
    let found = content.first().copied().unwrap_or_default();
    let text = String::from_utf8(content).map_err(|_| KeycodeError::Unexpected {
        position: 0,
        found,
        expected: "UTF-8",
    })?;
    Ok((text, taken))
}

/// Reads what [`push_u32`] wrote; also tells how many bytes it took.
pub fn take_u32(bytes: &[u8]) -> Result<(u32, usize), KeycodeError> {
    Reader::new(bytes).array().map(|bytes| (u32::from_be_bytes(bytes), 4))
}

/// Reads what [`push_u64`] wrote; also tells how many bytes it took.
pub fn take_u64(bytes: &[u8]) -> Result<(u64, usize), KeycodeError> {
    Reader::new(bytes).array().map(|bytes| (u64::from_be_bytes(bytes), 8))
}

/// Appends escaped bytes and the terminator that says whether they are all.
pub(super) fn push_escaped(out: &mut Vec<u8>, bytes: &[u8], cut: bool) {
    for (index, run) in bytes.split(|byte| *byte == 0).enumerate() {
        if index > 0 {
            out.extend_from_slice(&[0, ESCAPED]);
        }
        out.extend_from_slice(run);
    }
    out.extend_from_slice(&[0, if cut { TERMINATOR_CUT } else { TERMINATOR }]);
}

/// Reads a key from left to right, inverting its bytes if it is a descending component.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    pub(super) position: usize,
    /// All ones for descending components, else zero.
    mask: u8,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Reader { bytes, position: 0, mask: 0 }
    }

    pub(super) fn inverted(bytes: &'b [u8]) -> Self {
        Reader { bytes, position: 0, mask: 0xFF }
    }

    pub(super) fn at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8, KeycodeError> {
        let byte = self.bytes.get(self.position).ok_or_else(|| self.too_short())?;
        self.position += 1;
        Ok(byte ^ self.mask)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], KeycodeError> {
        let found: Option<[u8; N]> = self.slice(N).and_then(|slice| slice.try_into().ok());
        let mut array = found.ok_or_else(|| self.too_short())?;
        self.position += N;
        array.iter_mut().for_each(|byte| *byte ^= self.mask);
        Ok(array)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<Vec<u8>, KeycodeError> {
        let slice = self.slice(length).ok_or_else(|| self.too_short())?;
        let taken = slice.iter().map(|byte| byte ^ self.mask).collect();
        self.position += length;
        Ok(taken)
    }

    /// Reads escaped bytes; the flag tells whether they were cut.
    pub(super) fn escaped(&mut self) -> Result<(Vec<u8>, bool), KeycodeError> {
        let mut content = Vec::new();
        let cut = self.each_escaped(|byte| content.push(byte))?;
        Ok((content, cut))
    }

    /// Passes over escaped bytes; the flag tells whether they were cut.
    pub(super) fn skip_escaped(&mut self) -> Result<bool, KeycodeError> {
        self.each_escaped(|_| {})
    }

    pub(super) fn unexpected(&self, found: u8, expected: &'static str) -> KeycodeError {
        KeycodeError::Unexpected { position: self.position.saturating_sub(1), found, expected }
    }

    fn each_escaped(&mut self, mut each: impl FnMut(u8)) -> Result<bool, KeycodeError> {
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    TERMINATOR => return Ok(false),
                    TERMINATOR_CUT => return Ok(true),
                    ESCAPED => each(0),
                    found => return Err(self.unexpected(found, "an escape or the end of a string")),
                },
                byte => each(byte),
            }
        }
    }

    fn slice(&self, length: usize) -> Option<&'b [u8]> {
        self.bytes.get(self.position..self.position.checked_add(length)?)
    }

    fn too_short(&self) -> KeycodeError {
        KeycodeError::TooShort { length: self.bytes.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_bytes(content: &[u8], encoded: &[u8]) {
        let mut out = Vec::new();
        push_bytes(&mut out, content);
        assert_eq!(out, encoded);
        out.push(7);
        assert_eq!(take_bytes(&out), Ok((content.to_vec(), encoded.len())));
    }

    #[test]
    fn byte_strings_are_escaped_and_end_by_themselves() {
        check_bytes(b"", &[0, 0]);
        check_bytes(b"ab", b"ab\0\0");
        check_bytes(b"\0", &[0, 0xFF, 0, 0]);
        check_bytes(b"a\0\0b", b"a\0\xFF\0\xFFb\0\0");
    }

    #[test]
    fn parts_are_read_back_or_refused() {
        let mut out = Vec::new();
        push_str(&mut out, "é");
        push_u32(&mut out, 7);
        push_u64(&mut out, u64::MAX);
        assert_eq!(take_str(&out), Ok(("é".into(), 4)));
        assert_eq!(take_u32(&out[4..]), Ok((7, 4)));
        assert_eq!(take_u64(&out[8..]), Ok((u64::MAX, 8)));
        assert_eq!(take_u64(&out[9..]), Err(KeycodeError::TooShort { length: 7 }));
        assert_eq!(take_bytes(b"ab\0"), Err(KeycodeError::TooShort { length: 3 }));
        assert!(matches!(take_bytes(b"a\0\x05"), Err(KeycodeError::Unexpected { position: 2, .. })));
        assert!(take_str(b"\xFF\0\0").is_err());
    }
}
