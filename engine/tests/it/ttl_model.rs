//! Long random traces against the model of time to live.
//!
//! Each trace runs four times: as it was made, without any background work, with all of it after every step, and on
//! files. The engine must agree with the model after every step of each, and the answers of the first three must be
//! the same, word for word: background work shows nowhere. A failing trace shrinks, and prints as a script.

use std::fmt;

use mayfly_testkit::{
    Backend, World,
    model::{Body, How, Indexing, Step},
    trace::{Failure, IDS, PARTITIONS, Tracer},
    world::START,
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};

/// Traces per run; `MAYFLY_CASES` says otherwise.
const CASES: u32 = 32;

/// A default, then steps.
#[derive(Clone)]
struct Trace(Option<i64>, Vec<Step>);

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "default {:?}", self.0)?;
        self.1.iter().try_for_each(|step| writeln!(f, "  {step}"))
    }
}

fn trace() -> impl Strategy<Value = Trace> {
    (default(), vec(step(), 1..40)).prop_map(|(default, steps)| Trace(default, steps))
}

fn step() -> impl Strategy<Value = Step> {
    let write = (how(), name(), body()).prop_map(|(how, name, body)| Step::Write(how, name, body));
    let seconds = prop_oneof![Just(0), 0_u32..15, Just(i32::MAX as u32)];
    prop_oneof![
        20 => write,
        2 => batch().prop_map(|(partition, steps)| Step::Batch(partition, steps)),
        2 => batch().prop_map(|(partition, steps)| Step::Across(partition, steps)),
        2 => name().prop_map(Step::Delete),
        4 => default().prop_map(Step::SetDefault),
        2 => seconds.clone().prop_map(Step::CreateRule),
        2 => (0_usize..4, option::of(seconds)).prop_map(|(rule, seconds)| Step::ChangeRule(rule, seconds)),
        1 => prop_oneof![Just(Indexing::Whole), Just(Indexing::WithoutPayload), Just(Indexing::Lazy)]
            .prop_map(Step::SetIndexing),
        3 => (0_u64..12).prop_map(Step::Advance),
        8 => (0_usize..4, -1_i64..=1).prop_map(|(which, offset)| Step::AdvanceTo(which, offset)),
        1 => (0_u64..20).prop_map(Step::StepBack),
        2 => Just(Step::Page),
        2 => Just(Step::PurgeTick),
        2 => Just(Step::Purge),
        2 => Just(Step::Compact),
        2 => Just(Step::BuildTick),
        1 => Just(Step::ReapTick),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![Just(How::Create), Just(How::Upsert), Just(How::Replace), Just(How::Patch)]
}

fn name() -> impl Strategy<Value = (u8, u8)> {
    (0..PARTITIONS, 0..IDS)
}

fn batch() -> impl Strategy<Value = (u8, Vec<(How, u8, Body)>)> {
    let how = prop_oneof![Just(How::Create), Just(How::Upsert), Just(How::Replace)];
    let steps = vec((how, body()), 1..=usize::from(IDS)).prop_map(|steps| {
        let each = steps.into_iter().enumerate();
        each.map(|(id, (how, body))| (how, id as u8, body)).collect()
    });
    (0..PARTITIONS, steps)
}

fn default() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![Just(None), Just(Some(-1)), (1_i64..12).prop_map(Some), Just(Some(i64::from(i32::MAX)))]
}

fn body() -> impl Strategy<Value = Body> {
    let ttl = prop_oneof![
        8 => Just(None),
        2 => Just(Some(-1)),
        6 => (1_i64..12).prop_map(Some),
        1 => Just(Some(i64::from(i32::MAX))),
        1 => prop_oneof![Just(0), Just(-10), Just(i64::from(i32::MAX) + 1)].prop_map(Some),
    ];
    let start = START as i64;
    let dates = prop_oneof![3 => vec(start - 5..start + 40, 0..=0), 1 => vec(start - 5..start + 40, 1..=3)];
    (ttl, dates, 0_u8..6, 0_u8..4).prop_map(|(ttl, dates, unique, payload)| Body {
        ttl,
        dates,
        unique,
        payload,
    })
}

/// How much background work a run does beside what its trace says.
#[derive(Clone, Copy, Debug)]
enum Background {
    AsTraced,
    Nowhere,
    Everywhere,
}

/// Whether documents have unique values, and are purged one by one, or by count.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Unique,
    Plain,
}

async fn run(
    trace: &Trace,
    kind: Kind,
    backend: Backend,
    background: Background,
) -> Result<Vec<String>, Failure> {
    let world = World::new(backend).await;
    let mut tracer = match kind {
        Kind::Unique => Tracer::new(world, trace.0).await?,
        Kind::Plain => Tracer::plain(world, trace.0).await?,
    };
    for step in &trace.1 {
        if matches!(background, Background::Nowhere) && step.is_background() {
            continue;
        }
        tracer.step(step).await?;
        if matches!(background, Background::Everywhere) {
            for step in [Step::Purge, Step::BuildTick, Step::ReapTick] {
                tracer.step(&step).await?;
            }
            tracer.world().compact().await;
        }
    }
    Ok(tracer.answers().to_vec())
}

fn check(trace: &Trace, kind: Kind, on_files: bool) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = |backend, background| {
        runtime.block_on(run(trace, kind, backend, background)).map_err(|failure| match failure {
            Failure::Disagreement(how) => format!("{background:?} on {backend:?}:\n{how}"),
            Failure::Store(error) => format!("{background:?} on {backend:?}: {error}"),
        })
    };
    let answers = run(Backend::Memory, Background::AsTraced)?;
    for background in [Background::Nowhere, Background::Everywhere] {
        let others = run(Backend::Memory, background)?;
        let differs = answers.iter().zip(&others).find(|(one, other)| one != other);
        if differs.is_some() || answers.len() != others.len() {
            return Err(format!("with background work {background:?} the answers differ: {differs:?}"));
        }
    }
    if on_files {
        run(Backend::Mirrored, Background::AsTraced)?;
        run(Backend::Mirrored, Background::Everywhere)?;
    }
    Ok(())
}

/// 19. The log tells every expiry once, with the second it happened in, whenever purge came.
fn check_log(trace: &Trace) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let traced = runtime.block_on(async {
        let world = World::new(Backend::Mirrored).await;
        let mut tracer = Tracer::logged(world, trace.0).await?;
        for step in &trace.1 {
            tracer.step(step).await?;
        }
        tracer.compare_expiries().await
    });
    traced.map_err(|failure| match failure {
        Failure::Disagreement(how) => how,
        Failure::Store(error) => error.to_string(),
    })
}

fn cases() -> u32 {
    std::env::var("MAYFLY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

fn run_cases(cases: u32, check: impl Fn(&Trace) -> Result<(), String>) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&trace(), |trace| check(&trace).map_err(TestCaseError::fail));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

#[test]
fn the_engine_does_what_the_model_says() {
    run_cases(cases(), |trace| check(trace, Kind::Unique, false));
}

#[test]
fn the_engine_does_what_the_model_says_on_files() {
    run_cases(cases() / 10, |trace| check(trace, Kind::Unique, true));
}

/// 18. Purge by count, and what the store drops by it, change no answer.
#[test]
fn ttl_18_purge_by_count_does_what_the_model_says() {
    run_cases(cases(), |trace| check(trace, Kind::Plain, false));
}

#[test]
fn ttl_18_purge_by_count_does_what_the_model_says_on_files() {
    run_cases(cases() / 10, |trace| check(trace, Kind::Plain, true));
}

#[test]
fn ttl_19_the_log_tells_every_expiry_with_its_second() {
    run_cases(cases(), check_log);
}
