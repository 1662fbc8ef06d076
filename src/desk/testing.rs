//! Helpers of tests that ask a desk.

use std::sync::Arc;

use super::{Answer, Desk, Lease, Question, Task};

/// A desk whose lock worker has come.
pub fn served() -> Desk {
    let desk = Desk::default();
    desk.serve(Box::new(|| {}));
    desk
}

pub fn question() -> Question {
    Question { store: 1, verb: 0, name: vec![97], is_shared: false, flags: 0, payload: String::new(), thread: 0 }
}

pub fn granted(lease: &Arc<Lease>) -> Answer {
    Answer::Granted { fence: 7, lease: Arc::clone(lease), is_abandoned: false, text: String::new() }
}

/// The tasks: `a` that was asked, `c` to cancel, `r` to release, `R` to release with a mark.
pub fn tasks(desk: &Desk) -> Vec<(char, u64)> {
    let one = |task| match task {
        Task::Ask(number, _) => ('a', number),
        Task::Cancel(number) => ('c', number),
        Task::Release(number, false) => ('r', number),
        Task::Release(number, true) => ('R', number),
    };
    std::iter::from_fn(|| desk.next()).map(one).collect()
}
