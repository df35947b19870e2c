//! Printing: a syntax tree as text again.
//!
//! The form is canonical: operators are parenthesised, members are `a.b` where that is possible and `a["b"]`
//! where not, strings are in double quotes, clauses are separated by a line break. Two expressions mean the
//! same syntax exactly if they print the same, which is how GROUP BY finds its expressions in SELECT.
//!
//! Holds: parsing what was printed and printing it again gives the same text.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::ast::{
    BinaryOp, Collection, Count, CountKind, Direction, Expr, ExprKind, Item, Literal, QueryTree, Selection,
    Source, SubqueryKind, UnaryOp,
};
use crate::lexer::is_plain_name;
use crate::value::json::write_str;

impl Display for QueryTree {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        if self.select.distinct {
            f.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.select.top {
            write!(f, "TOP {} ", top.count)?;
        }
        match &self.select.what {
            Selection::Star(_) => f.write_str("*")?,
            Selection::Value(expr, alias) => {
                write!(f, "VALUE {expr}")?;
                print_alias(f, alias.as_deref())?;
            }
            Selection::List(items) => print_list(f, items)?,
        }
        for (index, source) in self.from.iter().enumerate() {
            write!(f, "\n{} {source}", if index == 0 { "FROM" } else { "JOIN" })?;
        }
        if let Some(filter) = &self.filter {
            write!(f, "\nWHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            f.write_str("\nGROUP BY ")?;
            print_list(f, &self.group_by)?;
        }
        if let Some(order) = &self.order_by {
            f.write_str(if order.rank { "\nORDER BY RANK " } else { "\nORDER BY " })?;
            for (index, item) in order.items.iter().enumerate() {
                f.write_str(if index > 0 { ", " } else { "" })?;
                write!(f, "{}", item.expr)?;
                f.write_str(match item.direction {
                    None => "",
                    Some(Direction::Ascending) => " ASC",
                    Some(Direction::Descending) => " DESC",
                })?;
            }
        }
        if let Some(clause) = &self.offset_limit {
            write!(f, "\nOFFSET {} LIMIT {}", clause.offset, clause.limit)?;
        }
        Ok(())
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)?;
        print_alias(f, self.alias.as_deref())
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            CountKind::Integer(value) => write!(f, "{value}"),
            CountKind::Double(value) => print_double(f, *value),
            CountKind::Parameter(name) => f.write_str(name),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let (true, Some((alias, _))) = (self.iterates, &self.alias) {
            write!(f, "{alias} IN ")?;
        }
        match &self.collection {
            Collection::Path(expr) | Collection::Call(expr) => write!(f, "{expr}")?,
            Collection::Query(query) => write!(f, "({query})")?,
        }
        match (self.iterates, &self.alias) {
            (false, Some((alias, _))) => write!(f, " AS {alias}"),
            _ => Ok(()),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Literal(literal) => write!(f, "{literal}"),
            ExprKind::Parameter(name) | ExprKind::Name(name) => f.write_str(name),
            ExprKind::Member(of, name) if is_plain_name(name) => {
                print_owner(f, of)?;
                write!(f, ".{name}")
            }
            ExprKind::Member(of, name) => {
                print_owner(f, of)?;
                write!(f, "[{}]", quoted(name))
            }
            ExprKind::Index(of, index) => {
                print_owner(f, of)?;
                write!(f, "[{index}]")
            }
            ExprKind::Array(items) => {
                f.write_str("[")?;
                print_list(f, items)?;
                f.write_str("]")
            }
            ExprKind::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    write!(f, "{}: {value}", quoted(name))?;
                }
                f.write_str("}")
            }
            ExprKind::Unary(operator, operand) => write!(f, "({}{operand})", unary_text(*operator)),
            ExprKind::Binary(operator, a, b) => write!(f, "({a} {} {b})", binary_text(*operator)),
            ExprKind::And(operands) => print_chain(f, operands, " AND "),
            ExprKind::Or(operands) => print_chain(f, operands, " OR "),
            ExprKind::Coalesce(a, b) => write!(f, "({a} ?? {b})"),
            ExprKind::Conditional(three) => {
                let [condition, then, otherwise] = &**three;
                write!(f, "({condition} ? {then} : {otherwise})")
            }
            ExprKind::Between { negated, operands } => {
                let [value, low, high] = &**operands;
                write!(f, "({value}{} BETWEEN {low} AND {high})", not_text(*negated))
            }
            ExprKind::In { negated, value, list } => {
                write!(f, "({value}{} IN (", not_text(*negated))?;
                print_list(f, list)?;
                f.write_str("))")
            }
            ExprKind::Like { negated, value, pattern, escape } => {
                write!(f, "({value}{} LIKE {pattern}", not_text(*negated))?;
                if let Some(escape) = escape {
                    write!(f, " ESCAPE {}", quoted(&escape.to_string()))?;
                }
                f.write_str(")")
            }
            ExprKind::Let { name, parts } => {
                let [value, body] = &**parts;
                write!(f, "(LET {name} = {value} IN {body})")
            }
            ExprKind::Call(call) => {
                // The names of built-in functions are the same in any case, those of the user are not.
                match call.is_udf {
                    true => write!(f, "udf.{}(", call.name)?,
                    false => write!(f, "{}(", call.name.to_ascii_uppercase())?,
                }
                print_list(f, &call.args)?;
                f.write_str(")")
            }
            ExprKind::Subquery(kind, query) => write!(f, "{}({query})", subquery_text(*kind)),
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Undefined => f.write_str("undefined"),
            Literal::Null => f.write_str("null"),
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Integer(value) => write!(f, "{value}"),
            Literal::Double(value) => print_double(f, *value),
            Literal::String(text) => f.write_str(&quoted(text)),
        }
    }
}

/// Always with a point or an exponent, so that it is read as a double again.
fn print_double(f: &mut Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_finite() { write!(f, "{value:?}") } else { f.write_str("1e999") }
}

/// A number before a dot would take the dot for its fraction.
fn print_owner(f: &mut Formatter<'_>, owner: &Expr) -> fmt::Result {
    match owner.kind {
        ExprKind::Literal(Literal::Integer(_) | Literal::Double(_)) => write!(f, "({owner})"),
        _ => write!(f, "{owner}"),
    }
}

fn print_alias(f: &mut Formatter<'_>, alias: Option<&str>) -> fmt::Result {
    match alias {
        Some(alias) if is_plain_name(alias) => write!(f, " AS {alias}"),
        Some(alias) => write!(f, " AS {}", quoted(alias)),
        None => Ok(()),
    }
}

fn print_list<T: Display>(f: &mut Formatter<'_>, list: &[T]) -> fmt::Result {
    for (index, item) in list.iter().enumerate() {
        f.write_str(if index > 0 { ", " } else { "" })?;
        write!(f, "{item}")?;
    }
    Ok(())
}

fn print_chain(f: &mut Formatter<'_>, operands: &[Expr], between: &str) -> fmt::Result {
    f.write_char('(')?;
    for (index, operand) in operands.iter().enumerate() {
        f.write_str(if index > 0 { between } else { "" })?;
        write!(f, "{operand}")?;
    }
    f.write_char(')')
}

/// A string as a literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_str(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn not_text(negated: bool) -> &'static str {
    if negated { " NOT" } else { "" }
}

fn unary_text(operator: UnaryOp) -> &'static str {
    match operator {
        UnaryOp::Minus => "- ",
        UnaryOp::Plus => "+ ",
        UnaryOp::BitNot => "~ ",
        UnaryOp::Not => "NOT ",
    }
}

fn subquery_text(kind: SubqueryKind) -> &'static str {
    match kind {
        SubqueryKind::Scalar => "",
        SubqueryKind::Exists => "EXISTS",
        SubqueryKind::Array => "ARRAY",
        SubqueryKind::All => "ALL",
        SubqueryKind::First => "FIRST",
        SubqueryKind::Last => "LAST",
    }
}

fn binary_text(operator: BinaryOp) -> &'static str {
    match operator {
        BinaryOp::Equal => "=",
        BinaryOp::NotEqual => "!=",
        BinaryOp::Less => "<",
        BinaryOp::LessOrEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterOrEqual => ">=",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::ShiftRightUnsigned => ">>>",
        BinaryOp::Concat => "||",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::BitAnd => "&",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Modulo => "%",
    }
}
