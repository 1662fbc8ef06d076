//! The text of a source file in which mutants are planted.

use std::collections::HashSet;
use std::ops::Range;

use crate::places::{Kind, Place};

struct Node {
    place: Place,
    within: Vec<Node>,
}

/// Returns the changed text, and the places that are in it.
pub fn render(text: &str, places: Vec<Place>, left_out: &HashSet<usize>) -> (String, Vec<Place>) {
    let mut kept: Vec<Place> = places.into_iter().filter(|place| !left_out.contains(&place.number)).collect();
    // Outer ones first; of the same range, those that were found first.
    kept.sort_by_key(|place| (place.range.start, std::cmp::Reverse(place.range.end), place.number));
    let mut rest = kept.into_iter().peekable();
    let mut nodes = Vec::new();
    while rest.peek().is_some() {
        nodes.extend(nested(&mut rest, text.len()));
    }
    let planted = between(text, 0..text.len(), &nodes);
    let mut places = Vec::new();
    flatten(nodes, &mut places);
    (planted, places)
}

/// Takes the next place that ends before `end`, with those within it.
fn nested(rest: &mut std::iter::Peekable<impl Iterator<Item = Place>>, end: usize) -> Option<Node> {
    let place = rest.next_if(|place| place.range.end <= end)?;
    let mut within = Vec::new();
    while rest.peek().is_some_and(|next| next.range.start < place.range.end) {
        within.push(nested(rest, place.range.end)?);
    }
    Some(Node { place, within })
}

fn flatten(nodes: Vec<Node>, places: &mut Vec<Place>) {
    for Node { place, within } in nodes {
        places.push(place);
        flatten(within, places);
    }
}

fn between(text: &str, range: Range<usize>, nodes: &[Node]) -> String {
    let mut planted = String::new();
    let mut at = range.start;
    for node in nodes {
        let Range { start, end } = node.place.range;
        if range.start <= start && end <= range.end {
            planted += &text[at..start];
            planted += &changed(text, node);
            at = end;
        }
    }
    planted + &text[at..range.end]
}

fn changed(text: &str, Node { place, within }: &Node) -> String {
    let is_on = format!("crate::planted::is({})", place.number);
    let part = |range: &Range<usize>| between(text, range.clone(), within);
    let original = part(&place.range);
    match &place.kind {
        Kind::Delete => format!("if !{is_on} {{ {original} }}"),
        Kind::Default => format!("(if {is_on} {{ Default::default() }} else {{ {original} }})"),
        Kind::True => format!("({is_on} || ({original}))"),
        Kind::False => format!("(!{is_on} && ({original}))"),
        Kind::Flip => format!("({original} != {is_on})"),
        Kind::Compare { left, right, operator, other } => {
            let (left, right) = (part(left), part(right));
            format!("(if {is_on} {{ ({left}) {other} ({right}) }} else {{ ({left}) {operator} ({right}) }})")
        }
    }
}
