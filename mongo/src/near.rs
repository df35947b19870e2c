//! `$geoNear` on a collection: which index it means, and what it adds to each document.

use bson::{RawArray, RawDocument, RawDocumentBuf};

use crate::{
    derived::place_paths,
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    geo::Surface,
    namespace::Collection,
    pipeline::GeoNear,
    stages,
};

/// The stage and the path of its places.
pub struct Near {
    stage: GeoNear,
    path: String,
}

impl Near {
    /// The first stage of a pipeline, if it is one.
    pub fn of(
        stages: &RawArray,
        collection: Option<&Collection>,
        surroundings: &Surroundings,
    ) -> Result<Option<Self>> {
        let Some(("$geoNear", operand)) = stages::first(stages)? else { return Ok(None) };
        let stage = surroundings.with(|context| GeoNear::parse(operand, &surroundings.names(), context))?;
        let Some(collection) = collection else {
            return Err(Failure::new(
                26,
                "$geoNear requires a geo index to run, but the collection does not exist",
            ));
        };
        let paths = place_paths(collection);
        let of = |surface: Surface| {
            let mut found: Vec<_> =
                paths.iter().filter(|(_, on)| *on == surface).map(|(path, _)| path).collect();
            found.sort();
            found.dedup();
            found
        };
        let (flat, round) = (of(Surface::Plane), of(Surface::Sphere));
        let path = match (&stage.key, flat.as_slice(), round.as_slice()) {
            (Some(key), ..) if paths.iter().any(|(path, _)| path == key) => key.clone(),
            (Some(_), ..) => {
                let message = "unable to find index for $geoNear query";
                return Err(Failure::new(291, message));
            }
            (None, [path], _) | (None, [], [path]) => (*path).clone(),
            (None, [], []) => {
                return Err(Failure::new(
                    27,
                    "$geoNear requires a 2d or 2dsphere index, but none were found",
                ));
            }
            _ => {
                let message = "There is more than one 2d or 2dsphere index; unsure which to use for $geoNear";
                return Err(Failure::new(27, message));
            }
        };
        Ok(Some(Self { stage, path }))
    }

    /// The filter that finds the documents, in their order.
    pub fn filter(&self, surroundings: &Surroundings) -> Result<Filter> {
        Ok(self.stage.filter(&self.path, &surroundings.names())?)
    }

    /// A document with its distance.
    pub fn told(&self, document: &RawDocument, distance: f64) -> RawDocumentBuf {
        self.stage.told(document, distance, &self.path)
    }
}
