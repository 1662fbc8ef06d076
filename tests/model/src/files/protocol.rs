//! The steps as a state machine for stateright.

use stateright::{Model, Property};

use super::fault::Fault;
use super::state::{At, Direct, Id, Process, State};
use crate::check::{Class, Classes, Protocol};

/// Processes that ask for one name, again and again.
#[derive(Clone, Debug)]
pub struct Files {
    pub name: String,
    /// Whether each shares.
    pub shares: Vec<bool>,
    /// The number of processes that may be stopped, for ever.
    pub stops: u8,
    /// Whether waits are given up.
    pub quits: bool,
    /// Whether liveness is checked, or what must hold always.
    pub live: bool,
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It comes: gets in, or waits.
    Ask(Id),
    /// It has waited long for its turn.
    LosePatience(Id),
    /// It looks at the gate.
    Look(Id),
    Leave(Id),
    Quit(Id),
    Stop(Id),
    /// A whole second is over.
    Second,
}

/// Beside those of the processes.
const SECONDS: u8 = 32;

impl Files {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn is_shared(&self, id: Id) -> bool {
        self.shares[usize::from(id)]
    }

    /// Whether the kernel can lock the file for it.
    fn can_enter(&self, s: &State, id: Id) -> bool {
        let alone = self.has(Fault::DirectAlone) && s.turn != Some(id);
        s.inside().all(|other| self.is_shared(other) && self.is_shared(id) && !alone)
    }

    /// It is in: it needs neither turn nor gate any more, and waits nowhere.
    fn enter(&self, s: &mut State, id: Id) {
        let process = s.process_mut(id);
        process.at = At::In;
        process.direct = Direct::No;
        s.queue.retain(|other| *other != id);
        if !self.has(Fault::DirectKeepsLine) {
            s.line.retain(|other| *other != id);
        }
        if s.turn == Some(id) && !self.has(Fault::KeepsTurn) {
            s.turn = None;
        }
        if !self.has(Fault::KeepsGate) {
            s.gate.retain(|other| *other != id);
        }
    }

    /// Does what the kernel does: the first of those who wait for a file gets it. A stopped process is not among them.
    fn settle(&self, s: &mut State) {
        loop {
            if s.turn.is_none()
                && let Some(place) = s.line.iter().position(|id| !s.process(*id).is_stopped)
            {
                let id = s.line.remove(place);
                s.turn = Some(id);
                if s.process(id).at == At::Waits && !s.queue.contains(&id) {
                    s.queue.push(id);
                }
                continue;
            }
            let first = s.queue.iter().copied().find(|id| !s.process(*id).is_stopped && self.can_enter(s, *id));
            let Some(first) = first else { return };
            self.enter(s, first);
        }
    }

    fn ask(&self, s: &mut State, id: Id) {
        s.process_mut(id).passed = false;
        let may_try = s.turn.is_none() || self.has(Fault::ComesPastTurn) && self.is_shared(id);
        if may_try && self.can_enter(s, id) {
            s.process_mut(id).at = At::In;
            return;
        }
        s.process_mut(id).at = At::Waits;
        if !self.is_shared(id) {
            s.gate.push(id);
        }
        s.line.push(id);
    }

    fn go_directly(&self, s: &mut State, id: Id) {
        s.process_mut(id).direct = Direct::Waits;
        s.queue.push(id);
    }

    fn look(&self, s: &mut State, id: Id) {
        if s.gate.is_empty() || self.has(Fault::NoGate) || self.has(Fault::GateOpensForEach) {
            self.go_directly(s, id);
        }
    }

    /// Lets the processes at the gate go in together.
    fn second(&self, s: &mut State) {
        for id in s.ids() {
            s.process_mut(id).passed = false;
        }
        for id in s.ids() {
            let Process { direct, is_stopped, .. } = *s.process(id);
            if direct == Direct::AtGate && !is_stopped && !self.has(Fault::GateForEver) {
                s.process_mut(id).passed = true;
                self.go_directly(s, id);
            }
        }
    }

    fn quit(&self, s: &mut State, id: Id) {
        let process = s.process_mut(id);
        process.at = At::Out;
        process.direct = Direct::No;
        s.queue.retain(|other| *other != id);
        s.line.retain(|other| *other != id);
        if s.turn == Some(id) && !self.has(Fault::QuitKeepsTurn) {
            s.turn = None;
        }
        if !self.has(Fault::QuitKeepsGate) {
            s.gate.retain(|other| *other != id);
        }
    }

    /// Holds are shorter than a second: those that went in at the last one are out before the next.
    fn may_be_second(&self, s: &State) -> bool {
        !s.inside().any(|id| s.process(id).passed && !s.process(id).is_stopped)
    }
}

impl Model for Files {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let process = Process { at: At::Out, direct: Direct::No, is_stopped: false, passed: false };
        vec![State {
            processes: vec![process; self.shares.len()],
            turn: None,
            line: Vec::new(),
            queue: Vec::new(),
            gate: Vec::new(),
            stops: 0,
        }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        for id in s.ids() {
            let Process { at, direct, is_stopped, .. } = *s.process(id);
            if is_stopped {
                continue;
            }
            match at {
                At::Out => steps.push(Step::Ask(id)),
                At::In => steps.push(Step::Leave(id)),
                At::Waits => {
                    if direct == Direct::No && s.turn != Some(id) && !self.has(Fault::NoPatience) {
                        steps.push(Step::LosePatience(id));
                    }
                    if direct == Direct::AtGate {
                        steps.push(Step::Look(id));
                    }
                    if self.quits {
                        steps.push(Step::Quit(id));
                    }
                }
            }
            if s.stops < self.stops {
                steps.push(Step::Stop(id));
            }
        }
        if self.may_be_second(s) {
            steps.push(Step::Second);
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        match step {
            Step::Ask(id) => self.ask(&mut s, id),
            Step::LosePatience(id) if self.is_shared(id) && !self.has(Fault::DirectAlone) => {
                s.process_mut(id).direct = Direct::AtGate;
            }
            Step::LosePatience(id) => self.go_directly(&mut s, id),
            Step::Look(id) => self.look(&mut s, id),
            Step::Leave(id) => s.process_mut(id).at = At::Out,
            Step::Quit(id) => self.quit(&mut s, id),
            Step::Stop(id) => {
                s.stops += 1;
                s.process_mut(id).is_stopped = true;
            }
            Step::Second => self.second(&mut s),
        }
        self.settle(&mut s);
        (s != *before).then_some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("who holds the name alone is alone", |files: &Files, s: &State| {
                s.inside().count() < 2 || s.inside().all(|id| files.is_shared(id))
            }),
            Property::always("turn and gate are of those who wait", |_, s: &State| {
                s.turn.iter().chain(&s.gate).chain(&s.line).all(|id| s.process(*id).at == At::Waits)
            }),
            Property::always("whoever has the turn waits for the lock", |_, s: &State| {
                s.turn.is_none_or(|id| s.queue.contains(&id))
            }),
        ]
    }
}

impl Protocol for Files {
    type Waiter = Id;

    fn name(&self) -> &str {
        &self.name
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn class(&self, step: Step) -> Option<Class> {
        match step {
            Step::LosePatience(id) | Step::Look(id) | Step::Leave(id) => Some(Class(id)),
            Step::Second => Some(Class(SECONDS)),
            Step::Ask(_) | Step::Quit(_) | Step::Stop(_) => None,
        }
    }

    fn due(&self, s: &State) -> Classes {
        let mut due = Classes::default();
        for id in s.ids().filter(|id| !s.process(*id).is_stopped) {
            let Process { at, direct, .. } = *s.process(id);
            let is_open = s.gate.is_empty() || self.has(Fault::NoGate) || self.has(Fault::GateOpensForEach);
            let goes_on = match direct {
                Direct::No => at == At::Waits && s.turn != Some(id) && !self.has(Fault::NoPatience),
                Direct::AtGate => is_open,
                Direct::Waits => false,
            };
            due.add_if(at == At::In || goes_on, Class(id));
        }
        let waits = s.ids().any(|id| s.process(id).direct == Direct::AtGate && !s.process(id).is_stopped);
        due.add_if(waits && self.may_be_second(s) && !self.has(Fault::GateForEver), Class(SECONDS));
        due
    }

    fn waiters(&self) -> Vec<Id> {
        (0..self.shares.len() as Id).collect()
    }

    /// Not behind somebody who was stopped inside.
    fn waits(&self, s: &State, id: Id) -> bool {
        let process = s.process(id);
        let can_come = |other: Id| !s.process(other).is_stopped || self.is_shared(other) && self.is_shared(id);
        process.at == At::Waits && !process.is_stopped && s.inside().all(can_come)
    }

    fn show(&self, s: &State) -> String {
        let process = |id: Id| {
            let Process { at, direct, is_stopped, passed } = s.process(id);
            let stopped = if *is_stopped { " stopped" } else { "" };
            format!("{id} {at:?} {direct:?}{stopped}{}", if *passed { " passed" } else { "" })
        };
        let processes: Vec<String> = s.ids().map(process).collect();
        format!("turn {:?} line {:?} queue {:?} gate {:?} | {}", s.turn, s.line, s.queue, s.gate, processes.join(" | "))
    }
}
