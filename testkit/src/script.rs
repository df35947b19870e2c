//! Golden scripts: a test as text, its commands and what they answer.
//!
//! ```text
//!   # A comment, to be kept.
//!   container c ttl=10                 commands, one per line
//!   create c {"id":"a"}
//!   ---
//!   created a at 1000                  what they answered, up to an empty line
//!
//!   ! create c {"id":"a"}              a command that must be refused
//!   ---
//!   Document exists already
//! ```
//!
//! [`check`] runs a script and compares; with `UPDATE=1` in the environment it writes the answers into the file
//! instead, to be read as a diff. Words in brackets before a command are tags; what they mean, and what commands there
//! are, is up to the runner ([`crate::commands`]). A script none of whose blocks answers anything shows nothing and
//! fails, unless it says `[empty]` on a line of its own.
//!
//! Holds: whatever the runner does not know fails the test, never passes in silence.

use std::{collections::BTreeMap, fmt::Write as _, future::Future, path::Path, pin::Pin};

/// One line of a script, taken apart.
#[derive(Debug, Default)]
pub struct Command {
    /// Words in brackets before it.
    pub tags: Vec<String>,
    /// Whether it begins with `!`: it must be refused.
    pub refused: bool,
    /// The first word.
    pub name: String,
    words: std::collections::VecDeque<String>,
    named: BTreeMap<String, String>,
}

/// A line of a script that makes no sense to whoever reads it.
pub type Misuse = String;

impl Command {
    /// Reads one line.
    pub fn parse(line: &str) -> Result<Self, Misuse> {
        let mut command = Self::default();
        let mut words = split(line)?.into_iter().peekable();
        while let Some(tag) = words.next_if(|word| word.starts_with('[') && word.ends_with(']')) {
            command.tags.push(tag[1..tag.len() - 1].to_owned());
        }
        command.refused = words.next_if(|word| word == "!").is_some();
        command.name = words.next().ok_or("a line without a command")?;
        for word in words {
            match word.split_once('=') {
                Some((name, value)) if name.chars().all(|c| c.is_ascii_lowercase() || c == '-') => {
                    if command.named.insert(name.to_owned(), value.to_owned()).is_some() {
                        return Err(format!("{name} is given twice"));
                    }
                }
                _ => command.words.push_back(word),
            }
        }
        Ok(command)
    }

    /// The next plain word.
    pub fn word(&mut self) -> Result<String, Misuse> {
        self.words.pop_front().ok_or_else(|| format!("{} needs another word", self.name))
    }

    /// The next plain word, if there is one.
    pub fn optional_word(&mut self) -> Option<String> {
        self.words.pop_front()
    }

    /// The next plain word as a number.
    pub fn number(&mut self) -> Result<u64, Misuse> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("{word} is no number"))
    }

    /// Whether the next plain word is `word`; takes it if so.
    pub fn flag(&mut self, word: &str) -> bool {
        let found = self.words.iter().position(|each| each == word);
        found.map(|at| self.words.remove(at)).is_some()
    }

    /// The value of `name=`, if given.
    pub fn named(&mut self, name: &str) -> Option<String> {
        self.named.remove(name)
    }

    /// The value of `name=` as a number, if given.
    pub fn named_number(&mut self, name: &str) -> Result<Option<u64>, Misuse> {
        let parse = |text: String| text.parse().map_err(|_| format!("{name}={text} is no number"));
        self.named(name).map(parse).transpose()
    }

    /// Refuses what nobody took.
    pub fn finish(&self) -> Result<(), Misuse> {
        match (self.words.front(), self.named.keys().next()) {
            (Some(word), _) => Err(format!("{} does not know what to do with {word}", self.name)),
            (None, Some(name)) => Err(format!("{} has no {name}=", self.name)),
            (None, None) => Ok(()),
        }
    }
}

/// Words between spaces; JSON in them, with its own spaces and quotes, stays whole.
fn split(line: &str) -> Result<Vec<String>, Misuse> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for c in line.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth = depth.checked_sub(1).ok_or("a bracket too many")?,
            ' ' if !quoted && depth == 0 => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    if depth > 0 || quoted {
        return Err(format!("a bracket or quote is not closed in: {line}"));
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    Ok(words)
}

/// What runs commands.
pub trait Runner {
    /// Runs a command; answers with lines to print, or says what makes no sense.
    fn run<'a>(&'a mut self, command: Command) -> Pin<Box<dyn Future<Output = Result<String, Misuse>> + 'a>>;
}

/// Commands, and what they are to answer.
#[derive(Debug, Default, PartialEq)]
struct Block {
    /// Comments and commands, as they are.
    lines: Vec<String>,
    answer: Vec<String>,
}

/// The environment variable that has scripts rewritten.
pub const UPDATE: &str = "UPDATE";

/// Runs the script in `path` and compares its answers, or writes them if asked to.
pub async fn check(path: &Path, runner: &mut dyn Runner) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut blocks = parse(&text);
    let may_be_empty = text.lines().any(|line| line == "[empty]");
    let mut found = Vec::new();
    for block in &mut blocks {
        let mut answer = String::new();
        for line in block.lines.iter().filter(|line| is_command(line)) {
            let ran = match Command::parse(line) {
                Ok(command) => runner.run(command).await,
                Err(misuse) => Err(misuse),
            };
            answer.push_str(&ran.unwrap_or_else(|misuse| panic!("{}: {line}: {misuse}", path.display())));
            if !answer.is_empty() && !answer.ends_with('\n') {
                answer.push('\n');
            }
        }
        found.push(answer.lines().map(str::to_owned).collect::<Vec<_>>());
    }
    let says_something = found.iter().any(|answer| answer.iter().any(|line| line != NOTHING));
    assert!(says_something || may_be_empty, "{}: a script that answers nothing", path.display());
    let wanted = print(&blocks);
    for (block, answer) in blocks.iter_mut().zip(found) {
        block.answer = if answer.is_empty() { vec![NOTHING.to_owned()] } else { answer };
    }
    let found = print(&blocks);
    if std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty()) {
        std::fs::write(path, found).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else if wanted != found {
        panic!(
            "{} answers otherwise; {UPDATE}=1 accepts it\n{}",
            path.display(),
            difference(&wanted, &found)
        );
    }
}

/// What stands for an empty answer.
const NOTHING: &str = "ok";

fn is_command(line: &str) -> bool {
    !line.starts_with('#') && line != "[empty]" && !line.trim().is_empty()
}

fn parse(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = vec![Block::default()];
    let mut in_answer = false;
    for line in text.lines() {
        let block = blocks.last_mut().expect("there is always one");
        match (line, in_answer) {
            ("---", _) => in_answer = true,
            ("", true) => {
                in_answer = false;
                blocks.push(Block::default());
            }
            (line, true) => block.answer.push(line.to_owned()),
            (line, false) => block.lines.push(line.to_owned()),
        }
    }
    blocks.retain(|block| block.lines.iter().any(|line| !line.is_empty()));
    blocks
}

fn print(blocks: &[Block]) -> String {
    let mut text = String::new();
    for (number, block) in blocks.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        for line in &block.lines {
            let _ = writeln!(text, "{line}");
        }
        if block.lines.iter().any(|line| is_command(line)) {
            text.push_str("---\n");
            block.answer.iter().for_each(|line| {
                let _ = writeln!(text, "{line}");
            });
        }
    }
    text
}

/// The lines around each place where two texts part, wanted before found.
fn difference(wanted: &str, found: &str) -> String {
    let (wanted, found): (Vec<_>, Vec<_>) = (wanted.lines().collect(), found.lines().collect());
    let same_head = wanted.iter().zip(&found).take_while(|(a, b)| a == b).count();
    let rest = wanted.len().min(found.len()) - same_head;
    let same_tail =
        wanted.iter().rev().zip(found.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    let lines = wanted[same_head.saturating_sub(5)..same_head].iter().map(|line| (' ', line));
    let lines = lines.chain(wanted[same_head..wanted.len() - same_tail].iter().map(|line| ('-', line)));
    let lines = lines.chain(found[same_head..found.len() - same_tail].iter().map(|line| ('+', line)));
    for (sign, line) in lines {
        let _ = writeln!(text, "{sign} {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JSON stays whole; names, tags and the mark of refusal are told apart.
    #[test]
    fn lines_are_taken_apart() {
        let mut command =
            Command::parse(r#"[ops] ! put c {"id": "a b", "x": [1, 2]} if=a.b unique=["/a b"]"#).unwrap();
        assert_eq!(command.tags, ["ops"]);
        assert!(command.refused);
        assert_eq!(command.name, "put");
        assert_eq!(command.word().unwrap(), "c");
        assert!(command.finish().unwrap_err().contains("does not know"));
        assert_eq!(command.word().unwrap(), r#"{"id": "a b", "x": [1, 2]}"#);
        assert_eq!(command.named("if").unwrap(), "a.b");
        assert!(command.finish().unwrap_err().contains("has no unique="));
        assert_eq!(command.named("unique").unwrap(), r#"["/a b"]"#);
        assert_eq!(command.finish(), Ok(()));
        assert!(Command::parse("put {").is_err());
    }

    struct Echo;

    impl Runner for Echo {
        fn run<'a>(
            &'a mut self,
            mut command: Command,
        ) -> Pin<Box<dyn Future<Output = Result<String, Misuse>> + 'a>> {
            Box::pin(async move {
                match command.name.as_str() {
                    "say" => command.word(),
                    "nothing" => Ok(String::new()),
                    name => Err(format!("there is no command {name}")),
                }
            })
        }
    }

    async fn run(text: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        check(file.path(), &mut Echo).await;
    }

    #[tokio::test]
    async fn a_right_script_passes() {
        run("# why\nsay a\nsay b\n---\na\nb\n\nnothing\n---\nok\n").await;
    }

    #[tokio::test]
    #[should_panic(expected = "answers otherwise")]
    async fn a_wrong_answer_fails() {
        run("say a\n---\nb\n").await;
    }

    #[tokio::test]
    #[should_panic(expected = "no command shout")]
    async fn an_unknown_command_fails() {
        run("shout a\n---\na\n").await;
    }

    #[tokio::test]
    #[should_panic(expected = "answers nothing")]
    async fn a_script_that_says_nothing_fails() {
        run("nothing\n---\nok\n").await;
    }

    #[tokio::test]
    async fn a_script_may_say_that_it_says_nothing() {
        run("[empty]\nnothing\n---\nok\n").await;
    }
}
