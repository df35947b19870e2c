//! What surrounds the evaluation of a filter, a pipeline or an update in a command: the time, chance, the collation and
//! the variables given with it.

use std::sync::Arc;

use bson::{DateTime, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp as ClusterStamp};
use mayfly_engine::{Engine, Timestamp};

use crate::{
    call::Call,
    collation::Collation,
    collations,
    context::Context,
    derived::Kind,
    error::MongoError,
    expression::{Expression, Names},
    failure::{Failure, Result},
    filter::Filter,
    namespace::Collection,
    planner::{has_derived, is_usable},
    text::TextIndex,
};

impl From<MongoError> for Failure {
    fn from(error: MongoError) -> Self {
        Self::new(error.code, error.message)
    }
}

/// The surroundings of one command.
#[derive(Clone)]
pub struct Surroundings {
    engine: Engine,
    now: Timestamp,
    cluster_time: ClusterStamp,
    /// How strings compare.
    pub collation: Option<Collation>,
    /// The variables given with the command.
    pub variables: Vec<(String, RawBson)>,
    /// What `$text` searches.
    pub text: Option<Arc<TextIndex>>,
}

impl Surroundings {
    /// Those of a command: its collation and its `let`.
    pub fn of(call: &Call<'_>) -> Result<Self> {
        let mut surroundings =
            Self::plain(&call.mongo.engine, call.now, call.mongo.cluster_time.last(call.now));
        if let Some(collation) = call.document("collation")? {
            surroundings.collation = collations::parse(&bson::Document::try_from(collation)?)?;
        }
        if let Some(variables) = call.document("let")? {
            surroundings.define(variables)?;
        }
        Ok(surroundings)
    }

    /// Those of a command on a collection: the collection's own collation counts where the command names none.
    pub fn on(call: &Call<'_>, collection: Option<&Collection>) -> Result<Self> {
        let mut surroundings = Self::of(call)?;
        if call.get("collation")?.is_none()
            && let Some(collection) = collection
            && let Ok(collation) = collection.options().get_document("collation")
        {
            surroundings.collation = collations::parse(collation)?;
        }
        if let Some(view) = collection.filter(|collection| collection.view().is_some()) {
            surroundings.check_view(view)?;
        }
        surroundings.text = collection.and_then(text_index);
        Ok(surroundings)
    }

    /// Refuses a view in which texts compare otherwise than here.
    pub fn check_view(&self, view: &Collection) -> Result<()> {
        let own = match view.options().get_document("collation") {
            Ok(collation) => collations::parse(collation)?,
            Err(_) => None,
        };
        if own.as_ref().map(Collation::spec) != self.collation.as_ref().map(Collation::spec) {
            return Err(Failure::new(167, "Cannot override a view's default collation"));
        }
        Ok(())
    }

    /// Without collation and variables.
    pub fn plain(engine: &Engine, now: Timestamp, cluster_time: ClusterStamp) -> Self {
        Self { engine: engine.clone(), now, cluster_time, collation: None, variables: Vec::new(), text: None }
    }

    /// The same with another collation.
    pub fn collated(&self, collation: Option<&RawDocument>) -> Result<Self> {
        let mut surroundings = self.clone();
        if let Some(collation) = collation {
            surroundings.collation = collations::parse(&bson::Document::try_from(collation)?)?;
        }
        Ok(surroundings)
    }

    /// Adds variables: each is an expression without a document.
    pub fn define(&mut self, variables: &RawDocument) -> Result<()> {
        let empty = RawDocumentBuf::new();
        for element in variables.iter() {
            let (name, value) = element?;
            let expression = Expression::parse(value, &self.names())?;
            let value = self.with(|context| expression.evaluate(&empty, context))?;
            self.variables.push((name.as_str().to_owned(), value.unwrap_or(RawBson::Null)));
        }
        Ok(())
    }

    /// The names of the variables.
    pub fn names(&self) -> Names {
        Names(self.variables.iter().map(|(name, _)| name.clone()).collect(), Default::default())
    }

    /// Evaluates something.
    pub fn with<R>(&self, evaluate: impl FnOnce(&Context<'_>) -> R) -> R {
        self.with_metadata(None, evaluate)
    }

    /// Evaluates something about a document that has a score or the like.
    pub fn with_metadata<R>(
        &self,
        metadata: Option<RawDocumentBuf>,
        evaluate: impl FnOnce(&Context<'_>) -> R,
    ) -> R {
        let random = || {
            let bytes = self.engine.ids().unique();
            let word = u64::from_be_bytes([
                bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15],
            ]);
            // The upper 53 bits are as many as a double can tell apart.
            (word >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut context = Context::new(DateTime::from_millis(self.now.0 as i64), &random);
        context.cluster_time = Some(self.cluster_time);
        context.collation = self.collation.as_ref();
        context.variables = self.variables.clone();
        context.text = self.text.as_deref();
        context.metadata = metadata;
        evaluate(&context)
    }

    /// Whether a document passes a filter.
    pub fn matches(&self, filter: &Filter, document: &RawDocument) -> Result<bool> {
        Ok(self.with(|context| filter.matches(document, context))?)
    }
}

/// The text index of a collection.
pub(crate) fn text_index(collection: &Collection) -> Option<Arc<TextIndex>> {
    let rules = collection.container.definition().index_rules.iter();
    let derived = rules.filter(|rule| has_derived(rule) && is_usable(rule));
    let mut specs = derived.filter_map(|rule| RawDocument::from_bytes(&rule.spec).ok());
    specs.find_map(|spec| match Kind::of(spec) {
        Some(Kind::Text(index)) => Some(Arc::new(index)),
        _ => None,
    })
}

/// A filter without variables; all documents where none is given.
pub fn parse_filter(filter: Option<&RawDocument>) -> Result<Filter> {
    match filter {
        Some(filter) => Ok(Filter::parse(filter, &Names::default())?),
        None => Ok(Filter::all()),
    }
}

/// The value of a field, if it is a document.
pub fn document_in<'a>(
    document: &'a RawDocument,
    name: &str,
    owner: &str,
) -> Result<Option<&'a RawDocument>> {
    match document.get(name)? {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => Ok(None),
        Some(RawBsonRef::Document(found)) => Ok(Some(found)),
        Some(other) => Err(crate::call::wrong_type(&format!("{owner}.{name}"), other, "object")),
    }
}
