//! The rows of a page as JSON text, in one buffer, which becomes the body of the answer.

/// Rows, one after the other with commas between them, in the envelope of a feed.
pub struct RowTexts {
    text: Vec<u8>,
    /// Where the first row begins.
    start: usize,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl RowTexts {
    /// No rows yet, of the container with this RID.
    pub fn of(owner_rid: &str) -> Self {
        let text = [b"{\"_rid\":\"", owner_rid.as_bytes(), b"\",\"Documents\":["].concat();
        Self { start: text.len(), text, ends: Vec::new() }
    }

    /// Makes room for so many rows, of so many bytes together.
    pub fn reserve(&mut self, rows: usize, bytes: usize) {
        self.ends.reserve(rows);
        self.text.reserve(bytes);
    }

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
        let end = self.ends.last().copied().unwrap_or(self.start);
        end - self.start - self.ends.len().saturating_sub(1)
    }

    /// The whole feed, which is taken out.
    pub fn take_feed(&mut self) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.text);
        text.extend_from_slice(format!("],\"_count\":{}}}", self.len()).as_bytes());
        text
    }

    /// One row after the other.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(self.start).chain(self.ends.iter().map(|end| end + 1));
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_as_an_array_has_them() {
        let mut rows = RowTexts::of("r");
        assert_eq!((rows.len(), rows.bytes()), (0, 0));
        for row in ["1", "", "\"a\""] {
            assert_eq!(rows.push(|out| out.extend_from_slice(row.as_bytes())), row.len());
        }
        assert_eq!((rows.len(), rows.bytes()), (3, 4));
        assert_eq!(rows.iter().collect::<Vec<_>>(), [&b"1"[..], b"", b"\"a\""]);
        assert_eq!(rows.take_feed(), br#"{"_rid":"r","Documents":[1,,"a"],"_count":3}"#);
        assert_eq!((rows.len(), rows.bytes()), (3, 4));
        assert_eq!(RowTexts::of("r").take_feed(), br#"{"_rid":"r","Documents":[],"_count":0}"#);
    }
}
