//! Documents as bytes, for loads that must cost little beside the server: made once, and what differs is written over.

use bson::{Document, cstr, rawdoc};
use memchr::memmem;

/// What the long text of a document is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Text {
    /// Words as people write them: a fifth of them make up half.
    Words,
    /// Letters and digits at random: a quarter can be saved and no more.
    Random,
}

/// How a document says when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It does not say.
    None,
    /// By a `ttl` of its own, in seconds.
    Ttl(i32),
    /// By the date in `at`, when the document is made.
    Date,
}

/// Documents that share a prefix of this many bits are in one logical partition, and in one batch over REST.
const PARTITION_BITS: u32 = 10;

/// Texts are cut from this many bytes, too far apart for a compressor to see that they overlap.
const POOL_BYTES: usize = 16 << 20;

/// What the template has where something is written over: as long, and nowhere else in it.
const ID: &str = "~id~id~id~id~id~";
const USER: &str = "~usr~";
const NUMBER: i32 = 0x7e6e_756d;
const GROUP: i32 = 0x7e67_7270;
const AT: i64 = 0x7e61_747e_6174_7e61;

/// Values of `user` and `group`.
const USERS: u64 = 5000;
const GROUPS: u64 = 100;

/// Makes documents.
pub struct Maker {
    template: Vec<u8>,
    pool: Vec<u8>,
    text_bytes: usize,
    id: usize,
    user: usize,
    number: usize,
    group: usize,
    text: usize,
    at: Option<usize>,
    ttl: Option<i32>,
}

impl Maker {
    /// One for documents with a text of so many bytes.
    pub fn new(text: Text, text_bytes: usize, expiry: Expiry) -> Self {
        let gap = "~".repeat(text_bytes);
        let mut document = rawdoc! { "_id": ID, "number": NUMBER, "user": USER, "group": GROUP };
        match expiry {
            Expiry::None => {}
            Expiry::Ttl(seconds) => document.append(cstr!("ttl"), seconds),
            Expiry::Date => document.append(cstr!("at"), bson::DateTime::from_millis(AT)),
        }
        document.append(cstr!("text"), gap.as_str());
        let template = document.into_bytes();
        let place = |what: &[u8]| memmem::find(&template, what).expect("the template has it");
        Self {
            pool: pool(text),
            text_bytes,
            id: place(ID.as_bytes()),
            user: place(USER.as_bytes()),
            number: place(&NUMBER.to_le_bytes()),
            group: place(&GROUP.to_le_bytes()),
            // The last of all: before the end of the text and the end of the document.
            text: template.len() - 2 - text_bytes,
            at: (expiry == Expiry::Date).then(|| place(&AT.to_le_bytes())),
            ttl: if let Expiry::Ttl(seconds) = expiry { Some(seconds) } else { None },
            template,
        }
    }

    /// The bytes of one document.
    pub fn document_bytes(&self) -> usize {
        self.template.len()
    }

    /// Appends document `n` as BSON, which is made at `now_ms`.
    pub fn push(&self, n: u64, now_ms: i64, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(&self.template);
        let document = &mut into[start..];
        let mut put = |at: usize, bytes: &[u8]| document[at..at + bytes.len()].copy_from_slice(bytes);
        put(self.id, id(n).as_bytes());
        put(self.number, &(n as i32).to_le_bytes());
        put(self.user, format!("u{:04}", n % USERS).as_bytes());
        put(self.group, &((n % GROUPS) as i32).to_le_bytes());
        put(self.text, self.text_of(n));
        if let Some(at) = self.at {
            put(at, &now_ms.to_le_bytes());
        }
    }

    /// Document `n` by itself.
    pub fn document(&self, n: u64) -> Document {
        let mut bytes = Vec::with_capacity(self.document_bytes());
        self.push(n, 0, &mut bytes);
        Document::from_reader(bytes.as_slice()).expect("a document")
    }

    /// Document `n` as JSON, in a logical partition.
    pub fn json(&self, n: u64, partition: &str) -> String {
        let ttl = self.ttl.map_or_else(String::new, |seconds| format!(r#""ttl":{seconds},"#));
        format!(
            r#"{{"id":"{}","pk":"{partition}","number":{n},"user":"u{:04}","group":{},{ttl}"text":"{}"}}"#,
            id(n),
            n % USERS,
            n % GROUPS,
            String::from_utf8_lossy(self.text_of(n)),
        )
    }

    fn text_of(&self, n: u64) -> &[u8] {
        let at = (scattered(n) % (self.pool.len() - self.text_bytes) as u64) as usize;
        &self.pool[at..at + self.text_bytes]
    }
}

/// The id of document `n`: in no order, as drivers' and people's ids are among several clients.
pub fn id(n: u64) -> String {
    format!("{:016x}", scattered(n))
}

/// The logical partition of batch `n` over REST.
pub fn partition(n: u64) -> String {
    format!("p{}", n % (1 << PARTITION_BITS))
}

/// Another number for each number, all over the place (the finalizer of splitmix64, which loses nothing).
pub fn scattered(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn pool(text: Text) -> Vec<u8> {
    let mut pool = Vec::with_capacity(POOL_BYTES + 16);
    let mut turn = 0;
    while pool.len() < POOL_BYTES {
        turn += 1;
        let chance = scattered(turn);
        match text {
            // The square of a chance is small more often than large: some words are frequent.
            Text::Words => {
                let [low, high] = [chance & 0xffff, (chance >> 16) & 0xffff];
                pool.extend_from_slice(word((low * high * WORDS) >> 32).as_bytes());
                pool.push(b' ');
            }
            Text::Random => pool.extend(chance.to_le_bytes().map(|byte| LETTERS[usize::from(byte & 63)])),
        }
    }
    pool
}

/// How many words there are.
const WORDS: u64 = 2000;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const SYLLABLES: [&str; 16] =
    ["ta", "ren", "mo", "li", "ser", "ka", "no", "vi", "del", "pa", "ru", "sto", "in", "a", "ge", "ber"];

/// Word number `n`; the frequent ones are short.
fn word(mut n: u64) -> String {
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[(n % 16) as usize]);
        n /= 16;
        if n == 0 {
            return word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_whole_and_differ() {
        for expiry in [Expiry::None, Expiry::Ttl(5), Expiry::Date] {
            let maker = Maker::new(Text::Words, 100, expiry);
            let [one, other] = [1, 2].map(|n| maker.document(n));
            assert_ne!(one.get("_id"), other.get("_id"));
            assert_eq!(one.get_i32("number").ok(), Some(1));
            assert_eq!(one.get_str("user").ok(), Some("u0001"));
            assert!(!one.get_str("text").expect("a text").contains('~'));
            assert!(serde_json::from_str::<serde_json::Value>(&maker.json(3, "p")).is_ok());
        }
    }

    #[test]
    fn random_text_is_not_words() {
        assert!(pool(Text::Words).contains(&b' '));
        assert!(!pool(Text::Random).contains(&b' '));
    }
}
