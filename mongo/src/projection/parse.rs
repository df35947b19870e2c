//! From a projection document to a tree, with MongoDB's errors for what cannot go together.

use bson::RawDocument;

use super::{Action, Projection, ProjectionKind, Tree};
use crate::error::{BAD_VALUE, MongoError, Result, bail};
use crate::expression::{Expr, Names, Scope, is_expression, parse_expression, split_path};
use crate::filter::Filter;
use crate::path::is_allowed_dollar_name;
use crate::values::{Ref, Value, as_double, fields, is_number, is_truthy, items, put};

/// Whose projection it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Find,
    Project,
    Add,
}

struct Parser<'a> {
    dialect: Dialect,
    names: &'a Names,
    filter: Option<&'a Filter>,
    included: Option<String>,
    excluded: Option<String>,
    /// Something that is neither: `$slice`.
    modified: bool,
    /// Whether a part of an array is cut out.
    sliced: bool,
    computed: bool,
    positional: bool,
    /// Items of arrays are asked for: beside fields that are left out, or like fields that are kept.
    elements: bool,
    tree: Tree,
}

impl<'a> Parser<'a> {
    fn new(dialect: Dialect, names: &'a Names, filter: Option<&'a Filter>) -> Parser<'a> {
        Parser {
            dialect,
            names,
            filter,
            included: None,
            excluded: None,
            modified: false,
            sliced: false,
            computed: false,
            positional: false,
            elements: false,
            tree: Tree::default(),
        }
    }

    fn object(&mut self, prefix: &[String], object: &RawDocument) -> Result<()> {
        for (name, value) in fields(object) {
            self.field(prefix, name, value)?;
        }
        Ok(())
    }

    fn field(&mut self, prefix: &[String], name: &str, value: Ref<'_>) -> Result<()> {
        let positional = self.dialect == Dialect::Find && (name.ends_with(".$"));
        let dotted = if positional { name.strip_suffix(".$").unwrap_or(name) } else { name };
        let mut path = prefix.to_vec();
        if dotted.contains(".$.") {
            bail!(31394, "As of 4.4, it's illegal to specify positional operator in the middle of a path.");
        }
        path.extend(split_path(dotted)?);
        let full = path.join(".");
        let is_id = full == "_id";
        if positional {
            if std::mem::replace(&mut self.positional, true) {
                bail!(31276, "Cannot specify more than one positional projection per query.");
            }
            if !is_truthy(Some(value)) || !(is_number(value) || matches!(value, Ref::Boolean(_))) {
                bail!(31395, "positional projection cannot be used with exclusion");
            }
            self.flag(&format!("{full}.$"), false, true)?;
            return self.add(&path, Action::Positional);
        }
        match value {
            Ref::Boolean(_) | Ref::Int32(_) | Ref::Int64(_) | Ref::Double(_) | Ref::Decimal128(_)
                if self.dialect != Dialect::Add =>
            {
                let include = is_truthy(Some(value));
                self.flag(&full, is_id, include)?;
                self.add(&path, if include { Action::Include } else { Action::Exclude })
            }
            Ref::Document(object) => self.nested(path, &full, object),
            _ => self.compute(&path, value),
        }
    }

    fn flag(&mut self, full: &str, is_id: bool, include: bool) -> Result<()> {
        if is_id {
            return Ok(());
        }
        if include {
            if self.excluded.is_some() {
                bail!(31253, "Cannot do inclusion on field {full} in exclusion projection");
            }
            self.included.get_or_insert(full.to_string());
        } else {
            if self.included.is_some() || self.computed {
                bail!(31254, "Cannot do exclusion on field {full} in inclusion projection");
            }
            self.excluded.get_or_insert(full.to_string());
        }
        Ok(())
    }

    fn nested(&mut self, path: Vec<String>, full: &str, object: &RawDocument) -> Result<()> {
        let first = fields(object).next();
        match first {
            None if self.dialect == Dialect::Add => self.compute(&path, Ref::Document(object)),
            None => bail!(
                51270,
                "An empty sub-projection is not a valid value. Found empty object at path {full}"
            ),
            Some(("$slice", operand)) if self.dialect == Dialect::Find && fields(object).count() == 1 => {
                if let Some(action) = slice(operand)? {
                    self.modified = true;
                    self.sliced = true;
                    return self.add(&path, action);
                }
                self.compute(&path, Ref::Document(object))
            }
            Some(("$elemMatch", operand)) if self.dialect == Dialect::Find => {
                let Ref::Document(_) = operand else {
                    bail!(31274, "elemMatch: Invalid argument, object required")
                };
                if path.len() > 1 {
                    bail!(31275, "Cannot use $elemMatch projection on a nested field.");
                }
                let (mut wrapped, mut inner) = (bson::RawDocumentBuf::new(), bson::RawDocumentBuf::new());
                put(&mut inner, "$elemMatch", operand);
                put(&mut wrapped, "a", inner);
                self.elements = true;
                self.add(&path, Action::ElemMatch(Filter::parse(&wrapped, &Names::default())?))
            }
            Some(("$meta", _)) if self.dialect == Dialect::Find => {
                self.modified = true;
                let expr = parse_expression(Ref::Document(object), &mut Scope::new(self.names))?;
                self.add(&path, Action::Compute(expr))
            }
            Some((name, _)) if name.starts_with('$') && !self.is_reference(name) => {
                if fields(object).count() > 1 {
                    bail!(
                        16410,
                        "FieldPath field names may not start with '$'. Consider using $getField or $setField."
                    );
                }
                // A stage that adds fields says it in the words of expressions.
                if !is_expression(name) && self.dialect != Dialect::Add {
                    bail!(31325, "Invalid projection :: caused by :: Unknown expression {name}");
                }
                self.compute(&path, Ref::Document(object))
            }
            Some(_) => {
                for (name, value) in fields(object) {
                    if name.starts_with('$') && self.dialect == Dialect::Add {
                        bail!(
                            40181,
                            "an expression specification must contain exactly one field, the name of the expression"
                        );
                    }
                    if name.starts_with('$') && !is_allowed_dollar_name(name) {
                        bail!(16410, "FieldPath field names may not start with '$'");
                    }
                    self.field(&path, name, value)?;
                }
                Ok(())
            }
        }
    }

    /// A part of a reference: a field, and no operator, unless fields are added.
    fn is_reference(&self, name: &str) -> bool {
        self.dialect != Dialect::Add && is_allowed_dollar_name(name)
    }

    fn compute(&mut self, path: &[String], value: Ref<'_>) -> Result<()> {
        if self.dialect != Dialect::Add {
            if self.excluded.is_some() {
                bail!(31310, "Cannot use an expression in an exclusion projection");
            }
            self.computed = true;
        }
        let expr = parse_expression(value, &mut Scope::new(self.names))?;
        self.add(path, Action::Compute(expr))
    }

    fn add(&mut self, path: &[String], action: Action) -> Result<()> {
        insert(&mut self.tree, path, action, path)
    }

    fn finish(self) -> Result<Projection> {
        let Parser {
            dialect,
            filter,
            included,
            excluded,
            modified,
            sliced,
            computed,
            positional,
            elements,
            ..
        } = self;
        let mut tree = self.tree;
        let id = tree
            .fields
            .iter()
            .find(|(name, _)| name == "_id")
            .map(|(_, action)| matches!(action, Action::Exclude));
        let is_cut =
            |(name, action): &(String, Action)| name == "_id" && matches!(action, Action::Slice { .. });
        let id_is_cut = tree.fields.iter().any(is_cut);
        let kind = match dialect {
            Dialect::Add => ProjectionKind::Addition,
            _ if included.is_some() || computed => ProjectionKind::Inclusion,
            // A part of an array is cut out of all fields, also beside an item that is looked for.
            _ if elements && excluded.is_none() && !sliced => ProjectionKind::Inclusion,
            // Parts and scores of fields are shown beside all others, unless `_id` is asked for by name.
            _ if excluded.is_some() || id == Some(true) => ProjectionKind::Exclusion,
            _ if modified && (id.is_none() || id_is_cut) => ProjectionKind::Exclusion,
            _ => ProjectionKind::Inclusion,
        };
        if positional && let Some(name) = filter.and_then(Filter::of_whole_documents) {
            bail!(224, "{name} is not allowed in this context");
        }
        if positional && elements {
            bail!(31255, "Cannot specify positional operator and $elemMatch.");
        }
        if positional && kind == ProjectionKind::Exclusion {
            bail!(BAD_VALUE, "Cannot use a positional projection in an exclusion");
        }
        match (kind, id) {
            (ProjectionKind::Inclusion, None) => tree.fields.insert(0, ("_id".to_string(), Action::Include)),
            (ProjectionKind::Inclusion, Some(true)) => tree.fields.retain(|(name, _)| name != "_id"),
            (ProjectionKind::Exclusion, Some(false)) if !id_is_cut => {
                tree.fields.retain(|(name, _)| name != "_id")
            }
            _ => {}
        }
        Ok(Projection { kind, tree, positional: positional.then(|| filter.cloned()).flatten() })
    }
}

fn insert(tree: &mut Tree, path: &[String], action: Action, full: &[String]) -> Result<()> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    let place = tree.fields.iter_mut().find(|(name, _)| name == first);
    match (place, rest.is_empty()) {
        (Some((_, Action::Nested(inner))), false) => insert(inner, rest, action, full),
        (Some(_), true) => bail!(31250, "Path collision at {}", full.join(".")),
        (Some(_), false) => {
            bail!(31249, "Path collision at {} remaining portion {}", full.join("."), rest.join("."))
        }
        (None, true) => {
            tree.fields.push((first.clone(), action));
            Ok(())
        }
        (None, false) => {
            let mut inner = Tree::default();
            insert(&mut inner, rest, action, full)?;
            tree.fields.push((first.clone(), Action::Nested(inner)));
            Ok(())
        }
    }
}

/// The forms of `$slice` that are about the field itself; others are expressions.
fn slice(operand: Ref<'_>) -> Result<Option<Action>> {
    let whole = |value: Ref<'_>| as_double(value).map(|number| number.clamp(-2e9, 2e9) as i64);
    match operand {
        value if is_number(value) => Ok(whole(value).map(|count| Action::Slice { skip: None, count })),
        Ref::Array(list) => {
            let parts: Vec<_> = items(list).collect();
            match parts.as_slice() {
                [skip, count] if is_number(*skip) && is_number(*count) => match (whole(*skip), whole(*count))
                {
                    (Some(_), Some(count)) if count <= 0 => {
                        bail!(28724, "$slice limit must be positive")
                    }
                    (Some(skip), Some(count)) => Ok(Some(Action::Slice { skip: Some(skip), count })),
                    _ => Ok(None),
                },
                _ => Ok(None),
            }
        }
        _ => bail!(28667, "Invalid $slice syntax. The given syntax did not match the find() syntax"),
    }
}

pub(super) fn find(projection: &RawDocument, filter: &Filter, names: &Names) -> Result<Projection> {
    let mut parser = Parser::new(Dialect::Find, names, Some(filter));
    parser.object(&[], projection)?;
    if parser.tree.fields.is_empty() {
        return Ok(Projection { kind: ProjectionKind::Exclusion, tree: Tree::default(), positional: None });
    }
    parser.finish()
}

pub(super) fn project(projection: &RawDocument, names: &Names) -> Result<Projection> {
    if fields(projection).next().is_none() {
        bail!(
            51272,
            "Invalid $project :: caused by :: projection specification must have at least one field"
        );
    }
    if fields(projection).any(|(name, _)| name.ends_with(".$")) {
        bail!(31324, "positional projection is not allowed in aggregate projection");
    }
    let mut parser = Parser::new(Dialect::Project, names, None);
    parser.object(&[], projection)?;
    parser.finish()
}

pub(super) fn add_fields(specification: &RawDocument, names: &Names) -> Result<Projection> {
    let mut parser = Parser::new(Dialect::Add, names, None);
    parser.object(&[], specification).map_err(|error| match error.code {
        // Paths that meet have a number of their own here.
        31249 | 31250 => MongoError::new(40176, error.message),
        _ => error,
    })?;
    parser.finish()
}

pub(super) fn set(values: Vec<(&[String], Value)>) -> Result<Projection> {
    let mut tree = Tree::default();
    for (path, value) in values {
        insert(&mut tree, path, Action::Compute(Expr::Constant(Some(value))), path)?;
    }
    Ok(Projection { kind: ProjectionKind::Addition, tree, positional: None })
}

pub(super) fn exclude(paths: &[String]) -> Result<Projection> {
    let mut tree = Tree::default();
    for path in paths {
        let path = split_path(path)?;
        insert(&mut tree, &path, Action::Exclude, &path)?;
    }
    Ok(Projection { kind: ProjectionKind::Exclusion, tree, positional: None })
}
