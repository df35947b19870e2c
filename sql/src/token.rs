//! Tokens: the words of a query.
//!
//! A token knows its kind and its place in the text. Keywords are found in any case; a word that is not
//! reserved is an identifier, and identifiers keep their case.

/// A place in the query text, in bytes; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// From the start of this one to the end of the other.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }
}

/// One word, number, string or sign.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenKind {
    /// A name.
    Identifier(String),
    /// A reserved word.
    Keyword(Keyword),
    /// `@name`, with the `@`.
    Parameter(String),
    /// A number without fraction or exponent that fits 64 bits.
    Integer(i64),
    /// 9223372036854775808: an integer only if a minus comes before it.
    IntegerMinMagnitude,
    /// Any other number.
    Double(f64),
    /// A string, its escapes resolved.
    String(String),
    /// An operator or a bracket.
    Sign(Sign),
    /// The end of the text.
    End,
}

/// Declares an enum of words or signs together with how each is written.
macro_rules! written {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each variant is documented by how it is written")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// How it is written (words in upper case).
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

written! {
    /// The reserved words. They cannot be names, not even after a dot.
    Keyword {
        And = "AND", Array = "ARRAY", As = "AS", Asc = "ASC", Between = "BETWEEN", By = "BY", Case = "CASE",
        Cast = "CAST", Convert = "CONVERT", Cross = "CROSS", Desc = "DESC", Distinct = "DISTINCT",
        Else = "ELSE", EndWord = "END", Escape = "ESCAPE", Exists = "EXISTS", False = "FALSE", For = "FOR",
        From = "FROM", Group = "GROUP", Having = "HAVING", In = "IN", Inner = "INNER", Insert = "INSERT",
        Into = "INTO", Is = "IS", Join = "JOIN", Left = "LEFT", Let = "LET", Like = "LIKE", Limit = "LIMIT",
        Not = "NOT", Null = "NULL", Offset = "OFFSET", On = "ON", Or = "OR", Order = "ORDER",
        Outer = "OUTER", Over = "OVER", Rank = "RANK", Right = "RIGHT", Select = "SELECT", Set = "SET",
        Then = "THEN", Top = "TOP", True = "TRUE", Udf = "UDF", Undefined = "UNDEFINED", Update = "UPDATE",
        Value = "VALUE", When = "WHEN", Where = "WHERE", With = "WITH",
    }
}

impl Keyword {
    /// The reserved word that `word` is, in any case.
    pub fn find(word: &str) -> Option<Keyword> {
        Keyword::ALL.iter().copied().find(|keyword| keyword.text().eq_ignore_ascii_case(word))
    }

    /// Whether it may also be a name where only a name can stand.
    pub fn is_also_a_name(self) -> bool {
        matches!(self, Keyword::Let | Keyword::Rank)
    }
}

written! {
    /// Operators and brackets. A longer sign comes before its beginnings: the lexer takes the first that fits.
    Sign {
        ShiftRightUnsigned = ">>>", ShiftLeft = "<<", ShiftRight = ">>", LessOrEqual = "<=",
        GreaterOrEqual = ">=", Unequal = "<>", NotEqual = "!=", Concat = "||", Coalesce = "??",
        Less = "<", Greater = ">", Equal = "=", Plus = "+", Minus = "-", Star = "*", Slash = "/",
        Percent = "%", Ampersand = "&", Bar = "|", Caret = "^", Tilde = "~", Question = "?", Colon = ":",
        Comma = ",", Dot = ".", ParenOpen = "(", ParenClose = ")", BracketOpen = "[", BracketClose = "]",
        BraceOpen = "{", BraceClose = "}",
    }
}
