//! Points, lines and areas.
//!
//! - [`shape`]: GeoJSON in, with the reasons why something is not valid.
//! - [`vertex`] and [`ring`]: the geometry of the globe and the plane in one.
//! - [`relate`]: within, intersects; [`measure`]: distances and areas.
//!
//! The container says whether positions are longitudes and latitudes or points of a plane.

mod measure;
mod relate;
mod ring;
mod shape;
mod vertex;

use shape::Shape;

use super::{Args, Family, Function, PlainRun};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    spatial("ST_AREA", 1, "ST_AREA(g)", "The area, in square metres on the globe.", st_area),
    spatial("ST_DISTANCE", 2, "ST_DISTANCE(g1, g2)", "The distance, in metres on the globe.", st_distance),
    spatial(
        "ST_INTERSECTS",
        2,
        "ST_INTERSECTS(g1, g2)",
        "Whether the shapes have a point in common.",
        st_intersects,
    ),
    spatial("ST_ISVALID", 1, "ST_ISVALID(e)", "Whether the value is a valid GeoJSON shape.", st_is_valid),
    spatial(
        "ST_ISVALIDDETAILED",
        1,
        "ST_ISVALIDDETAILED(e)",
        "Whether the value is a valid GeoJSON shape, and why not.",
        st_is_valid_detailed,
    ),
    spatial(
        "ST_WITHIN",
        2,
        "ST_WITHIN(g1, g2)",
        "Whether the first shape lies within the second.",
        st_within,
    ),
];

const fn spatial(
    name: &'static str,
    args: usize,
    signature: &'static str,
    help: &'static str,
    run: PlainRun,
) -> Function {
    Function::new(name, Family::Spatial, Args::exactly(args), signature, help, run).reads_context()
}

fn two(context: &Context<'_>, args: &[Value<'_>]) -> Option<(Shape, Shape)> {
    let [a, b] = args else { return None };
    let space = context.settings.space;
    Some((Shape::parse(a, space).ok()?, Shape::parse(b, space).ok()?))
}

fn st_area<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [shape] = args else { return Value::Undefined };
    let space = context.settings.space;
    Shape::parse(shape, space).ok().map(|shape| shape.area(space)).into()
}

fn st_distance<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    two(context, args).and_then(|(a, b)| a.distance(&b, context.settings.space)).into()
}

fn st_intersects<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    two(context, args).map(|(a, b)| a.intersects(&b)).into()
}

fn st_within<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    two(context, args).map(|(a, b)| a.is_within(&b)).into()
}

fn fault(context: &Context<'_>, args: &[Value<'_>]) -> Option<shape::Reason> {
    let shape = args.first().map(|value| Shape::parse(value, context.settings.space))?;
    match shape {
        Ok(shape) => shape.fault(),
        Err(reason) => Some(reason),
    }
}

fn st_is_valid<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(fault(context, args).is_none())
}

fn st_is_valid_detailed<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let reason = fault(context, args);
    Value::object([("valid", Value::Bool(reason.is_none())), ("reason", reason.into())])
}

#[cfg(test)]
mod cases;
#[cfg(test)]
pub(super) use cases::CASES;
