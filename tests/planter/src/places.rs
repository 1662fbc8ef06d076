//! The places of a source file that can be changed.

use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, Lit, Meta, Stmt};

/// How a place is changed.
#[derive(Clone, PartialEq)]
pub enum Kind {
    /// A statement is left out.
    Delete,
    /// A call, the value of a block, an arm or a closure, is replaced by the default of its type.
    Default,
    /// A condition, or an operand, is taken for true.
    True,
    /// The same, for false.
    False,
    /// A boolean is the other one.
    Flip,
    /// A comparison takes its bound for the other side.
    Compare { left: Range<usize>, right: Range<usize>, operator: &'static str, other: &'static str },
}

impl Kind {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Default => "default",
            Self::True => "true",
            Self::False => "false",
            Self::Flip => "flip",
            Self::Compare { other, .. } => other,
        }
    }
}

pub struct Place {
    pub number: usize,
    pub line: usize,
    pub kind: Kind,
    /// In bytes.
    pub range: Range<usize>,
}

impl Place {
    pub fn first_line<'a>(&self, text: &'a str) -> &'a str {
        text[self.range.clone()].lines().next().unwrap_or_default()
    }
}

struct Finder<'t> {
    text: &'t str,
    /// The byte at which each line begins.
    lines: Vec<usize>,
    first: usize,
    found: Vec<Place>,
}

/// Finds those of a file, numbered from `first`.
pub fn places(text: &str, first: usize) -> Vec<Place> {
    let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut finder = Finder { text, lines, first, found: Vec::new() };
    finder.visit_file(&syn::parse_file(text).expect("a source that compiles"));
    finder.found
}

impl Finder<'_> {
    fn range(&self, span: Span) -> Range<usize> {
        let at = |LineColumn { line, column }| {
            let start = self.lines[line - 1];
            self.text[start..].char_indices().nth(column).map_or(self.text.len(), |(at, _)| start + at)
        };
        at(span.start())..at(span.end())
    }

    fn add(&mut self, span: Span, kind: Kind) {
        let range = self.range(span);
        // `src/fault.rs` has mutants of its own.
        if self.text[range.clone()].trim_start_matches(['!', '(']).starts_with("fault!") {
            return;
        }
        let number = self.first + self.found.len();
        self.found.push(Place { number, line: span.start().line, kind, range });
    }

    fn condition(&mut self, condition: &Expr) {
        if !has_let(condition) {
            self.add(condition.span(), Kind::True);
            self.add(condition.span(), Kind::False);
        }
    }

    fn value(&mut self, value: &Expr) {
        if matches!(value, Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_)) {
            self.add(value.span(), Kind::Default);
        }
    }
}

fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

/// Whether this is compiled for tests, models or other systems only.
fn is_elsewhere(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => {
            let tokens = list.tokens.to_string();
            let is_of_tests = tokens.contains("test") && !tokens.contains("not (test");
            let named = ["windows", "loom", "shuttle", "macos"].iter().any(|name| tokens.contains(name));
            list.path.is_ident("cfg") && (is_of_tests || named && !tokens.contains("not"))
        }
        Meta::NameValue(_) => false,
    })
}

/// Whether a statement does something, and leaves no value.
fn acts(statement: &Stmt) -> bool {
    let Stmt::Expr(expression, Some(_)) = statement else { return false };
    match expression {
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Await(_) | Expr::Try(_) => true,
        Expr::Binary(binary) => {
            use BinOp::{AddAssign, BitAndAssign, BitOrAssign, SubAssign};
            matches!(binary.op, AddAssign(_) | SubAssign(_) | BitAndAssign(_) | BitOrAssign(_))
        }
        _ => false,
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_elsewhere(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let is_text = |name: &syn::Ident| name == "Debug" || name == "Display";
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if !is_elsewhere(&item.attrs) && !of.is_some_and(|of| is_text(&of.ident)) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if item.sig.constness.is_none() && !is_elsewhere(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if item.sig.constness.is_none() && !is_elsewhere(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    // Nothing is asked of constants, types and patterns when a program runs.
    fn visit_item_const(&mut self, _: &'a syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'a syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'a syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'a syn::ExprConst) {}
    fn visit_type(&mut self, _: &'a syn::Type) {}
    fn visit_pat(&mut self, _: &'a syn::Pat) {}
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_block(&mut self, block: &'a syn::Block) {
        for statement in block.stmts.iter().filter(|statement| acts(statement)) {
            self.add(statement.span(), Kind::Delete);
        }
        if let Some(Stmt::Expr(value, None)) = block.stmts.last() {
            self.value(value);
        }
        visit::visit_block(self, block);
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        self.value(&closure.body);
        visit::visit_expr_closure(self, closure);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        self.value(&arm.body);
        visit::visit_arm(self, arm);
    }

    fn visit_expr_if(&mut self, branch: &'a syn::ExprIf) {
        self.condition(&branch.cond);
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_while(&mut self, repeated: &'a syn::ExprWhile) {
        if !has_let(&repeated.cond) {
            self.add(repeated.cond.span(), Kind::False);
        }
        visit::visit_expr_while(self, repeated);
    }

    fn visit_expr_lit(&mut self, literal: &'a syn::ExprLit) {
        if matches!(literal.lit, Lit::Bool(_)) {
            self.add(literal.span(), Kind::Flip);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        let (left, right) = (&*binary.left, &*binary.right);
        let neutral = match binary.op {
            BinOp::And(_) => Some(Kind::True),
            BinOp::Or(_) => Some(Kind::False),
            _ => None,
        };
        if let Some(kind) = neutral.filter(|_| !has_let(left) && !has_let(right)) {
            // Of `a && b && c` the operands are three.
            let is_same =
                |operand: &Expr| matches!(operand, Expr::Binary(inner) if same_operator(&inner.op, &binary.op));
            for operand in [left, right].into_iter().filter(|operand| !is_same(operand)) {
                self.add(operand.span(), kind.clone());
            }
        }
        let bound = match binary.op {
            BinOp::Lt(_) => Some(("<", "<=")),
            BinOp::Le(_) => Some(("<=", "<")),
            BinOp::Gt(_) => Some((">", ">=")),
            BinOp::Ge(_) => Some((">=", ">")),
            _ => None,
        };
        if let Some((operator, other)) = bound {
            let (left, right) = (self.range(left.span()), self.range(right.span()));
            self.add(binary.span(), Kind::Compare { left, right, operator, other });
        }
        visit::visit_expr_binary(self, binary);
    }
}

fn same_operator(one: &BinOp, other: &BinOp) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}
