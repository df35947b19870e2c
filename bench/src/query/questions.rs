//! What is asked of every server, and the documents it is asked about.

/// One thing to ask all servers.
pub struct Question {
    /// What it is called in the table.
    pub name: &'static str,
    /// With `@p` for the parameter.
    pub cosmos: &'static str,
    /// For PostgreSQL, with `$1` for the parameter.
    pub sql: &'static str,
    /// How many different parameters.
    pub parameters: usize,
    /// How many rows the answer has.
    pub rows: usize,
}

/// The questions.
pub const QUESTIONS: [Question; 6] = [
    Question {
        name: "equality, 10 rows",
        cosmos: "SELECT * FROM c WHERE c.user = @p",
        sql: "SELECT body::text FROM docs WHERE (body->>'user')::int = $1",
        parameters: 1000,
        rows: 10,
    },
    Question {
        name: "range, 100 rows",
        cosmos: "SELECT * FROM c WHERE c.score >= @p AND c.score < @p + 100",
        sql: "SELECT body::text FROM docs WHERE (body->>'score')::int >= $1 AND (body->>'score')::int < $1 + 100",
        parameters: 900,
        rows: 100,
    },
    Question {
        name: "ORDER BY, LIMIT 10",
        cosmos: "SELECT * FROM c ORDER BY c.score OFFSET 0 LIMIT 10",
        sql: "SELECT body::text FROM docs ORDER BY (body->>'score')::int OFFSET 0 LIMIT 10",
        parameters: 0,
        rows: 10,
    },
    Question {
        name: "COUNT of an indexed value",
        cosmos: "SELECT VALUE COUNT(1) FROM c WHERE c.kind = @p",
        sql: "SELECT count(*)::text FROM docs WHERE (body->>'kind')::int = $1",
        parameters: 100,
        rows: 1,
    },
    Question {
        name: "GROUP BY, 100 groups",
        cosmos: "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
        sql: "SELECT body->>'kind', count(*)::text FROM docs GROUP BY 1",
        parameters: 0,
        rows: 100,
    },
    Question {
        name: "full scan, 10 rows",
        cosmos: "SELECT * FROM c WHERE c.rare = @p",
        sql: "SELECT body::text FROM docs WHERE (body->>'rare')::int = $1",
        parameters: 1000,
        rows: 10,
    },
];

/// How many logical partitions the documents are spread over.
pub const PARTITIONS: usize = 1000;

/// Document `n` of `count`: about 1 KB. Every other one has `half`, so no index on it lists all of them.
pub fn document(n: usize, count: usize) -> String {
    let tenth = count / 10;
    let half = if n.is_multiple_of(2) { format!(r#""half":{},"#, n * 7919 % count) } else { String::new() };
    format!(
        r#"{{"id":"{n:08}","pk":"p{}","name":"session {n}","user":{},"score":{},"kind":{},"active":{},{half}"tags":["a","b"],"address":{{"city":"Lisbon","zip":"{:05}"}},"rare":{},"payload":"{}"}}"#,
        n % PARTITIONS,
        n % tenth,
        // Prime to the count: every score once, in no order.
        n * 7919 % count,
        n % 100,
        n.is_multiple_of(2),
        n % 99_999,
        n % tenth,
        "mayfly ".repeat(105)
    )
}
