//! The commands of the engine's golden scripts.
//!
//! | command | |
//! |---|---|
//! | `container c pk=/a,/b ttl=10 unique=/a,/b;/c mode=lazy include=… exclude=… composite=/a,-/b text=/t vector=/v slots=4 log=5` | all options may be left out; the partition key is `/id` then |
//! | `replace-container c …` | the same options; `ttl=off` and `log=off` remove |
//! | `split c 3`, `ranges c` | splits partition key ranges until there are so many; shows them |
//! | `drop-container c`, `show-container c`, `database d`, `drop-database d` | |
//! | `create c {…}`, `put c {…}` (an upsert), `replace c {…}` | `if=label` or `if=*`; the word `ignore-ttl` keeps an invalid ttl as data |
//! | `patch c id set /a 1 remove /b incr /n 2` | `pk=…`, `if=…` |
//! | `delete c id`, `get c id` | `pk=…`; `get … as=label` names the version for `if=` |
//! | `batch c pk=… [{"create":{…}},{"delete":"id"},{"read":"id"}]` | |
//! | `fill c 100 pk=1 at=1000` | that many documents in one batch, with a number `n` and a date `at` |
//! | `list c`, `index c /a` | `rows=…` per page, `reverse`, `low=…`, `high=…`, `pk=…` |
//! | `words c red,car`, `texts c red "red car"` | documents that have one of the words of the first full-text index; what it says about some terms |
//! | `vectors c 1,2 euclidean` | documents by how near they can be to this vector, by the first vector index |
//! | `page c`, `page c as=label`, `page c from=label` | one page of a list, and on from there |
//! | `count c`, `usage c`, `forecast c ttl=…` | |
//! | `feed c from=beginning\|now\|time:s\|after:n`, `log c after=n` | `slot=…`, `rows=…` |
//! | `date-rule c /d 10`, `change-date-rule c 0 20`, `drop-date-rule c 0` | |
//! | `advance 5`, `advance 500ms`, `clock 900`, `now` | |
//! | `purge`, `build-indexes`, `reap` | to the end; the word `tick` for one tick |
//! | `check`, `reopen`, `crash`, `read-only on\|off` | |
//!
//! `[ops]` before a command prints what it wrote, by key family.

use std::{collections::HashMap, fmt::Write as _, future::Future, ops::Bound, pin::Pin, sync::Arc};

use mayfly_engine::{
    Access, Amount, CompositePath, Container, ContainerDefinition, DefaultTtl, Direction, DocumentId, Effect,
    Error, Etag, FeedStart, Found, HashRange, IfMatch, IndexName, IndexingMode, InvalidTtl, Operation, Pace,
    Position, Record, Timestamp, Transaction,
    patch::{self, PatchOperation, Pointer},
};
use mayfly_value::{
    bson::{Bson, RawBson},
    json::{JsonLimits, parse_value},
    keycode,
    order::Order,
    partition::{Epk, PartitionKey},
    path::Path,
    vector::Distance,
};

use crate::{
    recorder::Write,
    script::{Command, Misuse, Runner},
    words::{show_answer, show_neighbours, words_access},
    world::{World, definition, document, id_of, index_access, json, key_of_id, partition_key, text_id},
};

/// Runs engine scripts on a world.
pub struct Commands {
    world: World,
    etags: HashMap<String, Etag>,
    positions: HashMap<String, Position>,
}

/// Why a command has no answer.
enum Trouble {
    /// The engine refused; fine if the script expects it.
    Refused(Error),
    /// The script makes no sense.
    Misuse(Misuse),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<&str> for Trouble {
    fn from(misuse: &str) -> Self {
        Self::Misuse(misuse.to_owned())
    }
}

impl From<Misuse> for Trouble {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

type Answer<T = String> = Result<T, Trouble>;

impl Runner for Commands {
    fn run<'a>(&'a mut self, command: Command) -> Pin<Box<dyn Future<Output = Result<String, Misuse>> + 'a>> {
        Box::pin(self.run_checked(command))
    }
}

impl Commands {
    /// Scripts act on `world`.
    pub fn new(world: World) -> Self {
        Self { world, etags: HashMap::new(), positions: HashMap::new() }
    }

    async fn run_checked(&mut self, mut command: Command) -> Result<String, Misuse> {
        let ops = command.tags.iter().any(|tag| tag == "ops");
        if let Some(tag) = command.tags.iter().find(|tag| *tag != "ops") {
            return Err(format!("there is no tag [{tag}]"));
        }
        self.world.writes();
        let answer = match (self.command(&mut command).await, command.refused) {
            (Ok(answer), false) => answer,
            (Err(Trouble::Refused(error)), true) => error.to_string(),
            (Ok(answer), true) => return Err(format!("was not refused: {answer}")),
            (Err(Trouble::Refused(error)), false) => return Err(format!("was refused: {error}")),
            (Err(Trouble::Misuse(misuse)), _) => return Err(misuse),
        };
        let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
        if ops {
            lines.extend(physical(&self.world.writes()));
        }
        Ok(lines.join("\n"))
    }

    async fn command(&mut self, command: &mut Command) -> Answer {
        match command.name.as_str() {
            "database" | "drop-database" => self.database(command).await,
            "container" | "replace-container" => self.define(command).await,
            "drop-container" | "show-container" => self.container(command).await,
            "split" | "ranges" => self.ranges(command).await,
            "create" | "put" | "replace" => self.put(command).await,
            "patch" => self.patch(command).await,
            "delete" => self.delete(command).await,
            "get" => self.get(command).await,
            "batch" => self.batch(command).await,
            "fill" => self.fill(command).await,
            "list" | "index" => self.scan(command).await,
            "words" | "texts" => self.words(command).await,
            "vectors" => self.vectors(command).await,
            "page" => self.page(command).await,
            "count" | "usage" => self.usage(command).await,
            "forecast" => self.forecast(command).await,
            "feed" => self.feed(command).await,
            "log" => self.log(command).await,
            "date-rule" | "change-date-rule" | "drop-date-rule" => self.date_rule(command).await,
            "advance" | "clock" | "now" => self.time(command).await,
            "purge" | "build-indexes" | "reap" | "compact" => self.background(command).await,
            "check" | "reopen" | "crash" | "read-only" => self.whole(command).await,
            name => Err(format!("there is no command {name}").into()),
        }
    }

    async fn database(&mut self, command: &mut Command) -> Answer {
        let name = command.word()?;
        command.finish()?;
        let now = self.world.now().await;
        match command.name.as_str() {
            "database" => self.world.engine().create_database(&name, now).await.map(drop)?,
            _ => self.world.engine().delete_database(&name, None).await?,
        }
        Ok(String::new())
    }

    async fn define(&mut self, command: &mut Command) -> Answer {
        let name = command.word()?;
        let keys = command.named("pk");
        let slots = command.named_number("slots")?;
        if command.name == "container" {
            let mut definition = definition(&name, keys.as_deref().unwrap_or("/id"));
            options(&mut definition, command)?;
            command.finish()?;
            self.world.create_container_in_slots(definition, slots.unwrap_or(1) as u32).await?;
        } else {
            let container = self.world.container(&name)?;
            let mut next = container.definition().clone();
            options(&mut next, command)?;
            if let Some(paths) = keys {
                next.partition_key = definition(&name, &paths).partition_key;
            }
            command.finish()?;
            let now = self.world.now().await;
            self.world.engine().replace_container(&container, next, None, now).await?;
        }
        Ok(String::new())
    }

    async fn container(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        command.finish()?;
        let engine = self.world.engine();
        if command.name == "drop-container" {
            engine.delete_container(&container, None).await?;
            return Ok(String::new());
        }
        let definition = container.definition();
        let ttl = definition.default_ttl.map_or("off".to_owned(), |ttl| i64::from(ttl).to_string());
        let state = container.index_state();
        Ok(format!(
            "{}: ttl {ttl}, changed at {}, {} slots; index epoch {}, {}{}",
            container.name(),
            container.modified(),
            container.slots(),
            state.epoch,
            if state.ready {
                "ready".to_owned()
            } else {
                format!("{} % done", engine.index_progress(&container).await?)
            },
            if state.retired.is_empty() { String::new() } else { format!(", retired {:?}", state.retired) },
        ))
    }

    async fn ranges(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        if command.name == "split" {
            let count = command.number()? as u32;
            command.finish()?;
            let now = self.world.now().await;
            self.world.engine().split_ranges(&container, count, now).await?;
            return Ok(String::new());
        }
        command.finish()?;
        let now = self.world.now().await;
        let mut lines = String::new();
        for range in container.ranges() {
            let live = self.world.engine().range_usage(&container, range, now).await?;
            let end = range.keys.end.as_ref().map_or("FF".to_owned(), Epk::to_hex);
            let parents = match &range.parents[..] {
                [] => String::new(),
                parents => format!(", of {parents:?}"),
            };
            writeln!(
                lines,
                "{}: {:?} to {end} in slot {}{parents}, {} documents",
                range.id,
                range.keys.start.to_hex(),
                range.slot,
                live.documents
            )
            .map_err(|_| "no memory".to_owned())?;
        }
        Ok(lines)
    }

    async fn put(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let body = document(&command.word()?);
        let if_match = self.if_match(command)?;
        let invalid = if command.flag("ignore-ttl") { InvalidTtl::Ignore } else { InvalidTtl::Refuse };
        command.finish()?;
        let id = id_of(&body);
        let key = container.definition().partition_key.extract(&body).map_err(Error::from)?;
        let operation = match command.name.as_str() {
            "create" => Operation::Create { id, body },
            "put" => Operation::Upsert { id, body, if_match },
            _ => Operation::Replace { id, new_id: None, body, if_match },
        };
        self.write(&container, &key, operation, invalid).await
    }

    async fn patch(&mut self, command: &mut Command) -> Answer {
        let (container, id, key) = self.target(command)?;
        let if_match = self.if_match(command)?;
        let mut steps = Vec::new();
        while let Some(verb) = command.optional_word() {
            let at = Pointer::parse(&command.word()?)?;
            steps.push(match verb.as_str() {
                "remove" => PatchOperation::Remove(at),
                "add" => PatchOperation::Add(at, value(&command.word()?)?),
                "set" => PatchOperation::Set(at, value(&command.word()?)?),
                "replace" => PatchOperation::Replace(at, value(&command.word()?)?),
                "incr" => PatchOperation::Increment(at, value(&command.word()?)?),
                "move" => PatchOperation::Move { from: at, to: Pointer::parse(&command.word()?)? },
                verb => return Err(format!("patch cannot {verb}").into()),
            });
        }
        command.finish()?;
        let modify = Arc::new(move |record: &Record| patch::apply(record.body(), &steps));
        let id = DocumentId::text(&id);
        let operation = Operation::Modify { id, modify, if_match };
        self.write(&container, &key, operation, InvalidTtl::Refuse).await
    }

    async fn delete(&mut self, command: &mut Command) -> Answer {
        let (container, id, key) = self.target(command)?;
        let if_match = self.if_match(command)?;
        command.finish()?;
        let operation = Operation::Delete { id: DocumentId::text(&id), if_match };
        self.write(&container, &key, operation, InvalidTtl::Refuse).await
    }

    async fn write(
        &mut self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operation: Operation,
        invalid: InvalidTtl,
    ) -> Answer {
        let now = self.world.now().await;
        let (outcome, _) = self.world.engine().write(container, key, operation, invalid, now).await?;
        Ok(effect(outcome.effect, outcome.record.as_ref()))
    }

    async fn get(&mut self, command: &mut Command) -> Answer {
        let (container, id, key) = self.target(command)?;
        let label = command.named("as");
        command.finish()?;
        let Some(record) = self.world.read(container.name(), &key, &id).await? else {
            return Ok(format!("no {id}"));
        };
        if let Some(label) = label {
            let slot = container.locate(&key)?.slot();
            self.etags.insert(label, self.world.engine().etag(&container, slot, &record));
        }
        let until = match self.world.engine().expires_at(&container, &record) {
            Some(at) if at.0 % 1000 == 0 => format!(", expires at {}", at.seconds()),
            Some(at) => format!(", expires at {} ms", at.0),
            None => String::new(),
        };
        Ok(format!("{} written at {}{until}", json(record.body()), record.ts()))
    }

    async fn batch(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let key = partition_key(&command.named("pk").ok_or("batch needs pk=")?);
        let text = command.word()?;
        command.finish()?;
        let wrapped = document(&format!(r#"{{"steps":{text}}}"#));
        let mut operations = Vec::new();
        for step in wrapped.get_array("steps").map_err(|error| error.to_string())? {
            let step = step.map_err(|error| error.to_string())?;
            let step = step.as_document().ok_or("a step is an object")?;
            let (verb, value) = step.iter().next().ok_or("an empty step")?.map_err(|e| e.to_string())?;
            let id = value.as_str().map(DocumentId::text);
            let body = value.as_document().map(ToOwned::to_owned);
            let body_id = body.as_ref().map(|body| id_of(body));
            let if_match = None;
            operations.push(match (verb.as_str(), id, body.zip(body_id)) {
                ("create", None, Some((body, id))) => Operation::Create { id, body },
                ("put", None, Some((body, id))) => Operation::Upsert { id, body, if_match },
                ("replace", None, Some((body, id))) => {
                    Operation::Replace { id, new_id: None, body, if_match }
                }
                ("delete", Some(id), None) => Operation::Delete { id, if_match },
                ("read", Some(id), None) => Operation::Read { id },
                _ => return Err(format!("{verb} is no step of a batch").into()),
            });
        }
        let done = self.transact(&container, &key, &operations).await?;
        Ok(lines(done.outcomes.iter().map(|o| effect(o.effect, o.record.as_ref()))))
    }

    async fn fill(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let count = command.number()?;
        let key = command.named("pk").ok_or("fill needs pk=")?;
        let date = command.named_number("at")?;
        command.finish()?;
        let date = date.map_or(String::new(), |at| format!(r#","at":{{"$date":{at}}}"#));
        let create = |n: u64| {
            let body = document(&format!(r#"{{"id":"d{n:03}","pk":{key},"n":{n}{date}}}"#));
            Operation::Create { id: id_of(&body), body }
        };
        let operations: Vec<_> = (0..count).map(create).collect();
        let done = self.transact(&container, &partition_key(&key), &operations).await?;
        Ok(format!("created {} documents, version {}", done.outcomes.len(), done.lsn))
    }

    async fn transact(
        &mut self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: &[Operation],
    ) -> Answer<Transaction> {
        let now = self.world.now().await;
        let done = self.world.engine().transact(container, key, operations, InvalidTtl::Refuse, now).await;
        done.map_err(|refused| {
            Error::bad_request(format!("operation {}: {}", refused.operation, refused.error)).into()
        })
    }

    async fn scan(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let rows = command.named_number("rows")?.unwrap_or(1000) as usize;
        let direction = if command.flag("reverse") { Direction::Reverse } else { Direction::Forward };
        let access = access(&container, command)?;
        command.finish()?;
        let found = self.world.scan(container.name(), &access, direction, rows).await?;
        Ok(lines(found.iter().map(show)))
    }

    async fn words(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let rows = command.named_number("rows")?.unwrap_or(1000) as usize;
        let hashes = hashes(&container, command);
        let mut terms = vec![command.word()?];
        while let Some(term) = command.optional_word() {
            terms.push(term);
        }
        command.finish()?;
        if command.name == "words" {
            let access = words_access(&terms.join(" "), hashes);
            let found = self.world.scan(container.name(), &access, Direction::Forward, rows).await?;
            return Ok(lines(found.iter().map(show)));
        }
        Ok(match self.world.ask_texts(&container, &terms, &hashes).await? {
            Some(answer) => lines(show_answer(&answer)),
            None => "the index is not whole".to_owned(),
        })
    }

    async fn vectors(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let hashes = hashes(&container, command);
        let numbers = command.word()?;
        let distance = command.optional_word().unwrap_or_else(|| "cosine".to_owned());
        command.finish()?;
        let distance = Distance::named(&distance).ok_or("no such distance")?;
        let numbers: Result<Vec<f64>, _> = numbers.split(',').map(str::parse).collect();
        let numbers = numbers.map_err(|error| error.to_string())?;
        Ok(match self.world.ask_vectors(&container, &numbers, distance, &hashes).await? {
            Some(found) => lines(show_neighbours(&found)),
            None => "the index does not help".to_owned(),
        })
    }

    async fn page(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let rows = command.named_number("rows")?.unwrap_or(2) as usize;
        let (from, label) = (command.named("from"), command.named("as"));
        let access = access(&container, command)?;
        command.finish()?;
        let from = match from {
            Some(label) => Some(self.positions.get(&label).ok_or(format!("no position {label}"))?.clone()),
            None => None,
        };
        let (found, next) =
            self.world.page(container.name(), &access, Direction::Forward, from, rows).await?;
        let mut answer: Vec<_> = found.iter().map(show).collect();
        answer.push(if next.is_some() { "and more" } else { "the end" }.to_owned());
        if let (Some(label), Some(next)) = (label, next) {
            self.positions.insert(label, next);
        }
        Ok(lines(answer))
    }

    async fn usage(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        command.finish()?;
        let now = self.world.now().await;
        let usage = self.world.engine().usage(&container, now).await?;
        if command.name == "count" {
            return Ok(usage.live.documents.to_string());
        }
        let (live, backlog) = (amount(usage.live), amount(usage.backlog));
        let (purged, lag) = (amount(usage.purged), usage.lag_seconds);
        Ok(format!("live {live}; backlog {backlog}, lag {lag} s; purged {purged}"))
    }

    async fn forecast(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let default = ttl(&command.named("ttl").ok_or("forecast needs ttl=")?)?;
        command.finish()?;
        let now = self.world.now().await;
        let forecast = self.world.engine().forecast(&container, default, now).await?;
        let parts = [
            ("live", forecast.live),
            ("at once", forecast.at_once),
            ("within an hour", forecast.within_hour),
            ("within a day", forecast.within_day),
            ("within 30 days", forecast.within_month),
            ("later", forecast.later),
            ("never", forecast.never),
            ("pinned", forecast.pinned),
            ("with their own ttl", forecast.own),
        ];
        let parts = parts.iter().filter(|(_, part)| part.documents > 0);
        Ok(lines(parts.map(|(name, part)| format!("{name}: {}", amount(*part)))))
    }

    async fn feed(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let from = command.named("from").unwrap_or("beginning".to_owned());
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
        let start = match from.split_once(':') {
            None if from == "beginning" => FeedStart::Beginning,
            None if from == "now" => FeedStart::Now,
            Some(("time", at)) => FeedStart::Time(Timestamp::from_seconds(number(at)?)),
            Some(("after", at)) => FeedStart::After(number(at)?),
            _ => return Err(format!("a feed does not start from {from}").into()),
        };
        let slot = command.named_number("slot")?.unwrap_or(0) as u16;
        let rows = command.named_number("rows")?.unwrap_or(1000) as usize;
        command.finish()?;
        let now = self.world.now().await;
        let page = self.world.engine().changes(&container, slot, start, &HashRange::all(), rows, now).await?;
        let mut answer: Vec<_> =
            page.records.iter().map(|r| format!("{}: {}", r.lsn, json(r.body()))).collect();
        answer.push(format!("{} {}", if page.more { "more after" } else { "nothing after" }, page.position));
        Ok(lines(answer))
    }

    async fn log(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let after = command.named_number("after")?.unwrap_or(0);
        let slot = command.named_number("slot")?.unwrap_or(0) as u16;
        let rows = command.named_number("rows")?.unwrap_or(1000) as usize;
        command.finish()?;
        let now = self.world.now().await;
        let page = self.world.engine().log(&container, slot, after, &HashRange::all(), rows, now).await?;
        let mut answer = Vec::new();
        for (lsn, event) in &page.events {
            let id = event.id()?;
            let mut line = format!("{lsn}: {:?} {}", event.kind, id.as_text().unwrap_or("?"));
            if let Some(at) = event.expired_at {
                let _ = write!(line, " expired at {}", at.seconds());
            }
            if event.previous_lsn > 0 {
                let _ = write!(line, " after {}", event.previous_lsn);
            }
            if let Some(body) = event.current() {
                let _ = write!(line, " {}", json(body));
            }
            answer.push(line);
        }
        answer.push(format!("{} {}", if page.more { "more after" } else { "nothing after" }, page.position));
        Ok(lines(answer))
    }

    async fn date_rule(&mut self, command: &mut Command) -> Answer {
        let container = self.world.container(&command.word()?)?;
        let now = self.world.now().await;
        let engine = self.world.engine();
        if command.name == "date-rule" {
            let path = command.word()?;
            let path = Path::parse(&path).map_err(|error| error.to_string())?;
            let seconds = command.number()? as u32;
            command.finish()?;
            let (_, rule) = engine.create_date_rule(&container, &path, seconds, now).await?;
            return Ok(format!("rule {rule}"));
        }
        let rule = command.number()? as u16;
        let seconds = match command.name.as_str() {
            "change-date-rule" => Some(command.number()? as u32),
            _ => None,
        };
        command.finish()?;
        engine.change_date_rule(&container, rule, seconds, now).await?;
        Ok(String::new())
    }

    async fn time(&mut self, command: &mut Command) -> Answer {
        match command.name.as_str() {
            "now" => {}
            "clock" => {
                let seconds = command.number()?;
                self.world.set_clock(seconds);
            }
            _ => {
                let by = command.word()?;
                let (digits, unit) = match by.strip_suffix("ms") {
                    Some(digits) => (digits.to_owned(), 1),
                    None => (by, 1000),
                };
                let by: u64 = digits.parse().map_err(|_| format!("{digits} is no number"))?;
                self.world.advance_ms(by * unit);
            }
        }
        command.finish()?;
        let now = self.world.now().await;
        Ok(match (command.name.as_str(), now.0 % 1000) {
            ("now", 0) => now.seconds().to_string(),
            ("now", _) => format!("{} ms", now.0),
            _ => String::new(),
        })
    }

    async fn background(&mut self, command: &mut Command) -> Answer {
        let tick = command.flag("tick");
        command.finish()?;
        let engine = self.world.engine();
        let more = |more| if more { "and more" } else { "done" };
        Ok(match (command.name.as_str(), tick) {
            ("purge", tick) => {
                let purged = match tick {
                    true => engine.purge(self.world.now().await, Pace::Gentle).await?,
                    false => self.world.purge().await?,
                };
                let next = purged.next.map_or("none".to_owned(), |at| at.seconds().to_string());
                let more = if purged.more { ", and more" } else { "" };
                format!("purged {} documents, next at {next}{more}", purged.documents)
            }
            ("compact", _) => {
                self.world.compact().await;
                String::new()
            }
            ("build-indexes", true) => more(engine.build_indexes().await?).to_owned(),
            ("build-indexes", false) => self.world.build_indexes().await.map(|_| String::new())?,
            (_, true) => more(engine.reap().await?).to_owned(),
            (_, false) => self.world.reap().await.map(|_| String::new())?,
        })
    }

    async fn whole(&mut self, command: &mut Command) -> Answer {
        let word = command.optional_word();
        command.finish()?;
        match (command.name.as_str(), word.as_deref()) {
            ("check", None) => {
                let report = self.world.engine().check().await?;
                let mut answer = vec![format!("{} records, {} entries", report.records, report.entries)];
                answer.extend(report.problems);
                return Ok(lines(answer));
            }
            ("reopen", None) => self.world.reopen().await?,
            ("crash", None) => self.world.crash().await?,
            ("read-only", Some(word @ ("on" | "off"))) => self.world.engine().set_read_only(word == "on"),
            (name, _) => return Err(format!("{name} is not used so").into()),
        }
        Ok(String::new())
    }

    /// A container, an id and a partition key: `c id pk=…`.
    fn target(&self, command: &mut Command) -> Answer<(Arc<Container>, String, PartitionKey)> {
        let container = self.world.container(&command.word()?)?;
        let id = command.word()?;
        let key = command.named("pk").map_or_else(|| key_of_id(&id), |key| partition_key(&key));
        Ok((container, id, key))
    }

    fn if_match(&self, command: &mut Command) -> Answer<Option<IfMatch>> {
        Ok(match command.named("if").as_deref() {
            None => None,
            Some("*") => Some(IfMatch::Any),
            Some(label) => match self.etags.get(label) {
                Some(etag) => Some(IfMatch::Is(Some(*etag))),
                None => return Err(format!("no version is called {label}").into()),
            },
        })
    }
}

/// The options of a container.
fn options(definition: &mut ContainerDefinition, command: &mut Command) -> Answer<()> {
    let list = |text: String, at: char| -> Vec<String> {
        text.split(at).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    if let Some(text) = command.named("ttl") {
        definition.default_ttl = ttl(&text)?;
    }
    if let Some(text) = command.named("unique") {
        definition.unique_keys = list(text, ';').into_iter().map(|key| list(key, ',')).collect();
    }
    let indexing = &mut definition.indexing;
    if let Some(mode) = command.named("mode") {
        indexing.mode = match mode.as_str() {
            "consistent" => IndexingMode::Consistent,
            "lazy" => IndexingMode::Lazy,
            "none" => IndexingMode::None,
            mode => return Err(format!("there is no mode {mode}").into()),
        };
        indexing.automatic = indexing.mode != IndexingMode::None;
    }
    if let Some(text) = command.named("include") {
        indexing.included = list(text, ';');
    }
    if let Some(text) = command.named("exclude") {
        indexing.excluded = list(text, ';');
    }
    if let Some(text) = command.named("composite") {
        let part = |path: String| CompositePath {
            descending: path.starts_with('-'),
            path: path.trim_start_matches('-').to_owned(),
        };
        let index = |text: String| list(text, ',').into_iter().map(part).collect();
        indexing.composites = list(text, ';').into_iter().map(index).collect();
    }
    if let Some(text) = command.named("text") {
        indexing.texts = list(text, ';');
    }
    if let Some(text) = command.named("vector") {
        indexing.vectors = list(text, ';');
    }
    match command.named("log").as_deref() {
        None => {}
        Some("off") => definition.log_minutes = None,
        Some(minutes) => {
            definition.log_minutes = Some(minutes.parse().map_err(|_| format!("log={minutes}"))?)
        }
    }
    Ok(())
}

fn ttl(text: &str) -> Answer<Option<DefaultTtl>> {
    match text {
        "off" => Ok(None),
        text => {
            let seconds: i64 = text.parse().map_err(|_| format!("ttl={text}"))?;
            Ok(Some(seconds.try_into().map_err(Error::bad_request)?))
        }
    }
}

/// `list c` walks records, `index c /path` an index; `pk=` keeps to one logical partition or a prefix.
/// The hashes of `pk=`, or all of them.
fn hashes(container: &Container, command: &mut Command) -> HashRange {
    let keys = &container.definition().partition_key;
    match command.named("pk") {
        Some(key) => {
            let (start, end) = keys.prefix_range(&partition_key(&key));
            HashRange { start, end }
        }
        None => HashRange::all(),
    }
}

fn access(container: &Container, command: &mut Command) -> Answer<Access> {
    let hashes = hashes(container, command);
    let Some(path) = command.optional_word() else { return Ok(Access::Records(hashes)) };
    let (at_least, at_most) = (command.named("low"), command.named("high"));
    let Access::Index(index) = index_access(&path) else { return Err("no index".into()) };
    let IndexName::Path(path) = index.index else { return Err("no path".into()) };
    let bound = |text: Option<String>| match text {
        Some(text) => encoded(&text).map(Bound::Included),
        None => Ok(Bound::Unbounded),
    };
    Ok(Access::index(path, bound(at_least)?, bound(at_most)?, hashes))
}

fn encoded(text: &str) -> Result<Vec<u8>, Misuse> {
    let value = parsed(text)?;
    let mut out = Vec::new();
    keycode::push_value(&mut out, value.as_raw_bson_ref(), Order::Cosmos);
    Ok(out)
}

fn parsed(text: &str) -> Result<RawBson, Misuse> {
    parse_value(text.as_bytes(), JsonLimits::default()).map_err(|error| format!("{text}: {error}"))
}

fn value(text: &str) -> Result<Bson, Misuse> {
    let wrapped = document(&format!(r#"{{"v":{text}}}"#));
    let value = wrapped.get("v").map_err(|error| error.to_string())?.ok_or("no value")?;
    Bson::try_from(value).map_err(|error| error.to_string())
}

fn effect(effect: Effect, record: Option<&Record>) -> String {
    let what = format!("{effect:?}").to_lowercase();
    match record {
        Some(record) => format!("{what} {} at {}, version {}", text_id(record), record.ts(), record.lsn),
        None => what,
    }
}

fn show(found: &Found) -> String {
    match found.slot {
        0 => json(found.record.body()),
        slot => format!("slot {slot}: {}", json(found.record.body())),
    }
}

fn amount(amount: Amount) -> String {
    format!("{} documents of {} bytes", amount.documents, amount.bytes)
}

fn lines(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("\n")
}

/// One line per commit: which families were put (+), deleted (-) and counted (~), how often.
fn physical(writes: &[Write]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut counts: Vec<(String, usize)> = Vec::new();
    let flush = |counts: &mut Vec<(String, usize)>, lines: &mut Vec<String>| {
        let Some(line) = lines.last_mut() else { return };
        counts.sort();
        for (what, count) in counts.drain(..) {
            let times = if count == 1 { String::new() } else { format!("×{count}") };
            let _ = write!(line, " {what}{times}");
        }
    };
    for write in writes {
        let what = match write {
            Write::Commit(_) => {
                flush(&mut counts, &mut lines);
                lines.push(format!("{write}:"));
                continue;
            }
            Write::Clear(range, keys) => {
                flush(&mut counts, &mut lines);
                lines.push(format!("clear {}: {keys} keys", family(&range.start)));
                continue;
            }
            Write::Discard(range) => {
                flush(&mut counts, &mut lines);
                lines.push(format!("discard {}", family(&range.start)));
                continue;
            }
            Write::Put(key, _) => format!("+{}", family(&key.bytes)),
            Write::Delete(key) => format!("-{}", family(&key.bytes)),
            Write::Advance(key, _) => format!("~{}", family(&key.bytes)),
        };
        match counts.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += 1,
            None => counts.push((what, 1)),
        }
    }
    flush(&mut counts, &mut lines);
    lines
}

/// The name of the family a key belongs to, from its seventh byte.
fn family(key: &[u8]) -> &'static str {
    match key.get(6) {
        Some(0x01) => "counter",
        Some(0x02) => "purged",
        Some(0x03) => "purge-position",
        Some(0x04) => "index-position",
        Some(0x10) => "feed",
        Some(0x11) => "expiry",
        Some(0x12) => "date",
        Some(0x20) => "index",
        Some(0x21) => "composite",
        Some(0x22) => "unique",
        Some(0x26) => "text",
        Some(0x27) => "vector",
        Some(0x30) => "record",
        Some(0x31) => "log",
        Some(0x40) => "database",
        Some(0x41) => "container",
        Some(0x42) => "dropped",
        Some(0x43) => "horizon",
        Some(0x44) => "format",
        Some(0x45) => "kept",
        Some(0x46) => "note",
        None => "everything",
        Some(_) => "unknown",
    }
}
