//! Plants small faults (mutants) in a copy of the core, all in one build: each place asks `crate::planted::is(N)` whether its own is on
//! (mutant schemata, Untch, Offutt and Harrold 1993).
//!
//! ```text
//! sablock-planter FROM TO FIRST LEFT_OUT
//! ```
//!
//! Writes the sources below `FROM/src`, changed, below `TO/src`, and a line for each mutant to standard output, whose fields tabs divide:
//! number, file, line, kind, text. Numbers begin with FIRST. The file LEFT_OUT has those that do not compile.

mod places;
mod render;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Asked for at each place; the switch itself.
const SWITCH: &str = include_str!("planted.rs");
/// Not compiled here, or not of the product: other systems, tests, and what other mutants and models stand on.
const LEFT_OUT: [&str; 5] = ["windows", "tests", "fault", "sync", "audit"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [from, to, first, left_out] = arguments.as_slice() else { panic!("FROM TO FIRST LEFT_OUT") };
    let (from, to) = (Path::new(from), Path::new(to));
    let left_out: HashSet<usize> =
        fs::read_to_string(left_out)?.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    let mut next = first.parse().expect("a number");
    let mut files = Vec::new();
    sources(&from.join("src"), &mut files)?;
    files.sort();
    for path in files {
        let file = path.strip_prefix(from).expect("a file below it").to_str().expect("UTF-8");
        if !file.ends_with(".rs") || LEFT_OUT.iter().any(|part| file.contains(part)) {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let places = places::places(&text, next);
        next += places.len();
        let (mut planted, kept) = render::render(&text, places, &left_out);
        for place in kept {
            println!("{}\t{file}\t{}\t{}\t{}", place.number, place.line, place.kind.name(), place.first_line(&text));
        }
        if file == "src/lib.rs" {
            planted += "\n#[doc(hidden)]\npub mod planted;\n";
        }
        fs::write(to.join(file), planted)?;
    }
    fs::write(to.join("src/planted.rs"), SWITCH)
}
