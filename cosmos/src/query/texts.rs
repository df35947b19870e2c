//! The rows of a page as JSON text, in one buffer: as the body of the answer will have them.

/// Rows, one after the other with commas between them.
#[derive(Default)]
pub struct RowTexts {
    text: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl RowTexts {
    /// Adds the row that `write` appends, and says how many bytes it has.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if !self.ends.is_empty() {
            self.text.push(b',');
        }
        let start = self.text.len();
        write(&mut self.text);
        self.ends.push(self.text.len());
        self.text.len() - start
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// What the rows weigh, without what stands between them.
    pub fn bytes(&self) -> usize {
        self.text.len() - self.ends.len().saturating_sub(1)
    }

    /// All rows, as the items of an array.
    pub fn joined(&self) -> &[u8] {
        &self.text
    }

    /// One row after the other.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| end + 1));
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_as_an_array_has_them() {
        let mut rows = RowTexts::default();
        assert_eq!((rows.joined(), rows.bytes()), (&b""[..], 0));
        for row in ["1", "", "\"a\""] {
            assert_eq!(rows.push(|out| out.extend_from_slice(row.as_bytes())), row.len());
        }
        assert_eq!((rows.joined(), rows.len(), rows.bytes()), (&b"1,,\"a\""[..], 3, 4));
        assert_eq!(rows.iter().collect::<Vec<_>>(), [&b"1"[..], b"", b"\"a\""]);
    }
}
