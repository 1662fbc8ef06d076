//! The steps as a state machine for stateright.

use stateright::{Model, Property};

use super::fault::Fault;
use crate::check::Protocol;

type Id = u8;
/// Each call brings a value of its own.
type Value = u8;

/// Threads that come to one exchanger, so many times each.
#[derive(Clone, Debug)]
pub struct Exchanger {
    pub name: String,
    pub threads: u8,
    pub calls: u8,
    /// The number of those that may end.
    pub deaths: u8,
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Js,
    Waits,
    /// It was met, and its code does not know yet. With what it was granted.
    Met(Value),
    /// Its JavaScript has ended; it is still queued, or has been met since.
    Ending,
    EndingMet(Value),
    Gone,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    at: At,
    calls: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The second word: the value of the one who waits.
    value: Value,
    /// The waiters; one at most, but for a fault.
    queue: Vec<Id>,
    threads: Vec<Thread>,
    deaths: u8,
    /// Ghost: who met whom; the one who came brought the second.
    met: Vec<(Value, Value)>,
    /// Ghost: what calls returned, as what they brought and what they got.
    got: Vec<(Value, Value)>,
    /// Ghost: the values of calls that were given up.
    left: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Come(Id),
    /// Its code learns of the meeting.
    Collect(Id),
    /// A deadline or an abort.
    Quit(Id),
    /// Its JavaScript ends.
    End(Id),
    /// Its waits leave.
    Leave(Id),
}

impl State {
    fn thread(&mut self, id: Id) -> &mut Thread {
        &mut self.threads[usize::from(id)]
    }

    /// Returns the value that its current call has brought.
    fn brought(&self, id: Id) -> Value {
        id * 8 + self.threads[usize::from(id)].calls
    }
}

impl Exchanger {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn come(&self, s: &mut State, id: Id) {
        s.thread(id).calls += 1;
        let mine = s.brought(id);
        if s.queue.is_empty() || self.has(Fault::PassesBy) {
            s.queue.push(id);
            s.value = mine;
            s.thread(id).at = At::Waits;
            return;
        }
        let other = s.queue.remove(0);
        let found = if self.has(Fault::FindsItsOwn) { mine } else { s.value };
        s.met.push((s.brought(other), mine));
        s.got.push((mine, found));
        let is_ending = s.thread(other).at == At::Ending;
        s.thread(other).at = if is_ending { At::EndingMet(mine) } else { At::Met(mine) };
        s.value = if self.has(Fault::ReadsLate) { mine } else { 0 };
    }

    fn collect(&self, s: &mut State, id: Id) {
        let At::Met(granted) = s.thread(id).at else { return };
        let got = if self.has(Fault::ReadsLate) { s.value } else { granted };
        s.got.push((s.brought(id), got));
        s.thread(id).at = At::Js;
    }

    /// Its wait is taken out of the queue.
    fn take_out(&self, s: &mut State, id: Id) {
        let value = s.brought(id);
        s.left.push(value);
        if !self.has(Fault::LeaverLeavesValue) {
            s.queue.retain(|other| *other != id);
            s.value = 0;
        }
    }

    /// Too late once it was met.
    fn quit(&self, s: &mut State, id: Id) {
        if s.thread(id).at == At::Waits {
            self.take_out(s, id);
        } else if self.has(Fault::QuitAfterMeeting) {
            let value = s.brought(id);
            s.left.push(value);
        } else {
            return self.collect(s, id);
        }
        s.thread(id).at = At::Js;
    }

    /// The value that it was granted goes with it: the other has its value all the same.
    fn leave(&self, s: &mut State, id: Id) {
        if s.thread(id).at == At::Ending && !self.has(Fault::EndStaysQueued) {
            self.take_out(s, id);
        }
        s.thread(id).at = At::Gone;
    }
}

impl Model for Exchanger {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State { threads: vec![Thread::default(); usize::from(self.threads)], ..State::default() }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        for (id, thread) in (0..).zip(&s.threads) {
            match thread.at {
                At::Js if thread.calls < self.calls => steps.push(Step::Come(id)),
                At::Waits => steps.push(Step::Quit(id)),
                At::Met(_) => steps.extend([Step::Collect(id), Step::Quit(id)]),
                At::Ending | At::EndingMet(_) => steps.push(Step::Leave(id)),
                At::Js | At::Gone => {}
            }
            if matches!(thread.at, At::Waits | At::Met(_)) && s.deaths < self.deaths {
                steps.push(Step::End(id));
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        match step {
            Step::Come(id) => self.come(&mut s, id),
            Step::Collect(id) => self.collect(&mut s, id),
            Step::Quit(id) => self.quit(&mut s, id),
            Step::End(id) => {
                s.deaths += 1;
                let thread = s.thread(id);
                thread.at = if let At::Met(value) = thread.at { At::EndingMet(value) } else { At::Ending };
            }
            Step::Leave(id) => self.leave(&mut s, id),
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("whoever returns has the value of whom it met", |_, s: &State| {
                s.got
                    .iter()
                    .all(|(mine, theirs)| s.met.contains(&(*mine, *theirs)) || s.met.contains(&(*theirs, *mine)))
            }),
            Property::always("what was given up is given to nobody", |_, s: &State| {
                s.left.iter().all(|value| s.met.iter().all(|(one, other)| one != value && other != value))
            }),
            Property::always("a value is given once", |_, s: &State| {
                let values = s.met.iter().flat_map(|(one, other)| [one, other]);
                values.clone().enumerate().all(|(index, value)| !values.clone().take(index).any(|seen| seen == value))
            }),
            Property::always("no two wait", |_, s: &State| s.queue.len() <= 1),
            Property::always("nothing is left to the dead", |_, s: &State| {
                !s.queue.iter().any(|id| s.threads[usize::from(*id)].at == At::Gone)
            }),
        ]
    }
}

impl Protocol for Exchanger {
    type Waiter = Id;

    fn name(&self) -> &str {
        &self.name
    }

    fn show(&self, s: &State) -> String {
        let ats: Vec<At> = s.threads.iter().map(|thread| thread.at).collect();
        format!("{} {:?} | {ats:?} | got {:?} left {:?}", s.value, s.queue, s.got, s.left)
    }
}
