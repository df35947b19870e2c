//! Pipelines of up to four stages, over documents made of the same bytes; other collections hold the same documents.
#![no_main]

mod making;

use bson::{DateTime, RawDocumentBuf};
use libfuzzer_sys::fuzz_target;
use making::Maker;
use mayfly_mongo::{
    Context, MongoError,
    expression::Names,
    filter::Filter,
    pipeline::{Collections, Pipeline, Row},
};

struct Same(Vec<RawDocumentBuf>);

impl Collections for Same {
    fn scan(&self, _: &str, _: &Filter, visit: &mut dyn FnMut(Row) -> Result<bool, MongoError>) -> Result<(), MongoError> {
        for document in &self.0 {
            if !visit(Row::made(document.clone()))? {
                break;
            }
        }
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut maker = Maker(bytes);
    let mut context = Context::new(DateTime::from_millis(1_700_000_000_123), &|| 0.5);
    // A fuzzer gives up on what takes more.
    context.memory_max = 8 << 20;
    let Ok(pipeline) = Pipeline::parse(&maker.pipeline(), &Names::of(&context)) else { return };
    let documents = Same((0..4).map(|_| maker.document(0)).collect());
    let mut execution = pipeline.start(&context, &documents);
    for document in &documents.0 {
        if execution.push(Row::made(document.clone())).is_err() {
            return;
        }
    }
    let _ = execution.finish();
    let _ = execution.take();
});
