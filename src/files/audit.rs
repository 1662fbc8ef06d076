//! The audit of names of files (see `engine/audit.rs`): remains of waits that are over. They may be there for a moment.

use super::file::LockMode;
use super::guard::GUARDS;
use super::line::{Direct, Driver, Line};
use super::names::{NAMES, NamedFile};

/// A line for each remain.
pub fn left() -> Vec<String> {
    let guards = GUARDS.lock().values().filter(|guard| guard.strong_count() == 0).count();
    let mut left: Vec<String> = (0..guards).map(|_| "a guard of a directory that nobody uses".into()).collect();
    // Not while these are locked: the last user of a name takes it out.
    let names: Vec<_> = NAMES.lock().iter().map(|((path, _), name)| (path.clone(), name.upgrade())).collect();
    for (path, name) in names {
        let path = path.display();
        match name {
            None => left.push(format!("a name in {path} that nobody uses")),
            Some(name) => left.extend(name.left().into_iter().map(|what| format!("{what} of a name in {path}"))),
        }
    }
    left
}

impl NamedFile {
    fn left(&self) -> Vec<String> {
        let mut state = self.state.lock();
        let mut left = Vec::new();
        for (mode, how) in [(LockMode::Exclusive, "exclusive"), (LockMode::Shared, "shared")] {
            left.extend(state.line(mode).left().map(|what| format!("{what} in the {how} line")));
        }
        left
    }
}

impl Line {
    /// Parts that are there though nobody waits.
    fn left(&self) -> impl Iterator<Item = &'static str> {
        let there = [
            ("a turn", self.turn.is_some()),
            ("a gate", self.gate.is_some()),
            ("a driver", !matches!(self.driver, Driver::None)),
            ("a wait without a turn", !matches!(self.direct, Direct::None)),
        ];
        there.into_iter().filter(|(_, is_there)| *is_there && self.wanted.is_empty()).map(|(what, _)| what)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::files::directory::Directory;
    use crate::files::testing::Scratch;

    #[test]
    fn it_says_what_is_left_of_a_line() {
        let scratch = Scratch::new();
        let directory = Arc::new(Directory::open(Some(scratch.path())).unwrap());
        let name = NamedFile::get(&directory, &[97]);
        assert_eq!(name.left(), Vec::<String>::new());
        name.state.lock().line(LockMode::Shared).direct = Direct::Keeper;
        name.state.lock().line(LockMode::Exclusive).driver = Driver::Keeper;
        assert_eq!(name.left(), ["a driver in the exclusive line", "a wait without a turn in the shared line"]);
    }
}
