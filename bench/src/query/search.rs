//! Documents with vectors and texts, and searches among them. They are made of numbers from a seed: every run has the
//! same.

/// How many numbers a vector has.
pub const DIMENSIONS: usize = 256;

/// Words in a text.
const WORDS: usize = 120;

/// Different words there are.
const VOCABULARY: u64 = 5000;

/// What is asked, and what it is called.
pub fn questions() -> Vec<(&'static str, String)> {
    let vector = vector(7);
    let by_vector = format!("VectorDistance(c.vector, {vector})");
    let by_text = format!("FullTextScore(c.text, '{}', '{}')", word(12), word(300));
    vec![
        ("nearest 10 vectors", format!("SELECT TOP 10 c.id FROM c ORDER BY {by_vector}")),
        ("best 10 texts of two words", format!("SELECT TOP 10 c.id FROM c ORDER BY RANK {by_text}")),
        ("both, fused", format!("SELECT TOP 10 c.id FROM c ORDER BY RANK RRF({by_vector}, {by_text})")),
        (
            "texts with a word",
            format!("SELECT TOP 10 c.id FROM c WHERE FullTextContains(c.text, '{}')", word(300)),
        ),
    ]
}

/// Searches for the ten nearest of a vector, by the index and by comparing all.
pub fn nearest(number: u64) -> [String; 2] {
    let vector = vector(number ^ 0xF00D);
    ["", ", true"].map(|brute| {
        format!("SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.vector, {vector}{brute})")
    })
}

/// The policies of the container.
pub fn policies() -> (serde_json::Value, serde_json::Value) {
    let vectors = serde_json::json!({ "vectorEmbeddings": [{
        "path": "/vector", "dataType": "float32", "distanceFunction": "cosine", "dimensions": DIMENSIONS,
    }] });
    let texts = serde_json::json!({
        "defaultLanguage": "en-US", "fullTextPaths": [{ "path": "/text", "language": "en-US" }],
    });
    (vectors, texts)
}

/// Document `n`.
pub fn document(n: usize) -> String {
    let mut numbers = Numbers(n as u64 ^ 0x5EED);
    // Small numbers more often than large ones, as with words.
    let words: Vec<String> = (0..WORDS)
        .map(|_| word(numbers.below(VOCABULARY) * numbers.below(VOCABULARY) / VOCABULARY))
        .collect();
    let partition = n % super::questions::PARTITIONS;
    format!(
        r#"{{"id":"{n:08}","pk":"p{partition}","vector":{},"text":"{}"}}"#,
        vector(n as u64 + 1000),
        words.join(" ")
    )
}

fn vector(seed: u64) -> String {
    let mut numbers = Numbers(seed);
    let numbers: Vec<String> =
        (0..DIMENSIONS).map(|_| format!("{:.6}", numbers.below(2_000_000) as f64 / 1e6 - 1.0)).collect();
    format!("[{}]", numbers.join(","))
}

/// A word that no stemmer changes.
fn word(number: u64) -> String {
    const SYLLABLES: [&str; 8] = ["ba", "ko", "mu", "ta", "zo", "pu", "ka", "mo"];
    let digits = (0..5).map(|place| SYLLABLES[(number >> (3 * place)) as usize % SYLLABLES.len()]);
    digits.collect()
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
