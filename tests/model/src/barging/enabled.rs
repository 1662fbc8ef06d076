//! The actions that may happen next in a state.

use super::agent::{Agent, At, Hold, Id, Life, NOBODY, Stage, Stall, TIMER, Verb};
use super::fault::Fault;
use super::queue::Way;
use super::scenario::Bound;
use super::setting::Barging;
use super::state::{Frozen, State};
use super::step::{Section, Step};

pub fn steps(protocol: &Barging, state: &State, out: &mut Vec<Step>) {
    let mut next = Next { protocol, state, out };
    for id in state.ids() {
        if state.is_occupied(id) {
            continue;
        }
        match state.agent(id).life {
            Life::Running => next.running(id),
            Life::Dying(stage) => next.dying(id, stage),
            Life::Gone => {}
        }
    }
    next.deliveries();
    next.clock();
}

struct Next<'a> {
    protocol: &'a Barging,
    state: &'a State,
    out: &'a mut Vec<Step>,
}

impl Next<'_> {
    /// A section waits until the bucket is free.
    fn section(&mut self, section: Section) {
        if !self.protocol.scenario.split_sections {
            self.out.push(Step::Run(section));
        } else if self.state.bucket.is_none() {
            self.out.push(Step::Freeze(section));
        }
    }

    fn running(&mut self, id: Id) {
        let scenario = &self.protocol.scenario;
        let agent = *self.state.agent(id);
        if agent.hold == Hold::Granted && matches!(agent.at, At::Parked | At::Returning) {
            self.out.push(Step::Accept(id));
        }
        match agent.at {
            At::Js if !agent.is_stalled() => self.javascript(id, &agent),
            At::Js => self.out.push(Step::Resume(id)),
            At::Calling(verb) => {
                if self.protocol.has(Fault::LooksBeforeLocking) && verb != Verb::Unlock {
                    self.out.push(Step::Look(id));
                } else {
                    self.section(Section::Verb(id));
                }
            }
            At::Decided(..) => self.section(Section::Verb(id)),
            At::Parked if agent.hold != Hold::Granted => self.parked(id, &agent),
            At::Away => self.section(Section::Back(id)),
            At::Draining(_) => self.out.push(Step::Drain(id)),
            At::Claiming(_) => self.claim(id),
            At::Asleep(_) => self.asleep(id, &agent),
            At::Parked | At::Returning => {}
        }
        if self.state.ghost.deaths < scenario.deaths && self.can_end(&agent) {
            self.out.push(Step::Die(id));
        }
    }

    /// JavaScript can be ended where it runs or is about to run again. A parked thread notices in its next slice; where
    /// the scenario has no slices, it may as well notice at once.
    fn can_end(&self, agent: &Agent) -> bool {
        match agent.at {
            At::Js | At::Calling(_) | At::Away | At::Returning => true,
            At::Parked => agent.hold == Hold::Granted || !self.protocol.scenario.away,
            At::Decided(..) | At::Draining(_) | At::Claiming(_) | At::Asleep(_) => false,
        }
    }

    fn javascript(&mut self, id: Id, agent: &Agent) {
        let scenario = &self.protocol.scenario;
        let kind = self.protocol.kind(id);
        let inside = agent.hold == Hold::Inside;
        // A thread that holds the lock and blocks on it without a timeout is reported so; with one, it waits it out.
        if kind.blocks && (!inside || scenario.tries && kind.tasks > 0) {
            self.out.push(Step::Call(id, Verb::Lock));
        }
        if kind.blocks && scenario.tries && self.state.word.fast_lock(id).is_none() {
            self.out.push(Step::Call(id, Verb::TryLock));
        }
        if self.protocol.free_task(self.state, id).is_some() {
            self.out.push(Step::Call(id, Verb::LockAsync));
        }
        if kind.tasks > 0 && scenario.tries && self.state.word.fast_lock(id).is_none() {
            self.out.push(Step::Call(id, Verb::TryLockAsync));
        }
        if inside {
            self.out.push(Step::Call(id, Verb::Unlock));
            if self.state.word.abandoned && scenario.repairs {
                if self.protocol.has(Fault::ConsistentWithoutBucket) {
                    self.out.push(Step::Repair(id));
                } else {
                    self.section(Section::MarkConsistent(id));
                }
            }
        }
        if scenario.quits {
            for way in (1..=kind.tasks).map(Way::Async) {
                if self.state.queue.find(id, way).is_some() {
                    self.section(Section::Abort(id, way));
                }
            }
        }
        if scenario.stalls && kind.tasks > 0 && agent.hold == Hold::No && agent.stall == Stall::No {
            self.out.push(Step::Stall(id, Stall::Busy));
            self.out.push(Step::Stall(id, Stall::Elsewhere));
        }
        self.turn(id, agent);
    }

    /// The event loop turns.
    fn turn(&mut self, id: Id, agent: &Agent) {
        if !agent.may_turn() {
        } else if self.protocol.scenario.split_offers {
            if agent.group.called {
                self.out.push(Step::Drain(id));
            }
        } else if agent.group.offered {
            self.claim(id);
        }
    }

    /// Whether it sleeps depends on how long its waiter has waited.
    fn claim(&mut self, id: Id) {
        let may_park = self.protocol.may_park(self.state, id);
        if may_park {
            self.section(Section::ClaimOrPark(id));
        }
        if !may_park || self.protocol.scenario.bound != Bound::ShortHolds {
            self.section(Section::Claim(id));
        }
    }

    fn asleep(&mut self, id: Id, agent: &Agent) {
        if agent.hold == Hold::Granted || self.protocol.park_may_end(self.state, id) {
            self.section(Section::ParkOver(id));
        }
    }

    fn parked(&mut self, id: Id, agent: &Agent) {
        let scenario = &self.protocol.scenario;
        let Some(waiter) = self.state.queue.find(id, Way::Blocked) else { return };
        if waiter.woken {
            self.section(Section::Woken(id));
        }
        // An agent that waits for itself has a timeout.
        if scenario.quits || agent.hold == Hold::Inside {
            self.section(Section::Deadline(id));
        }
        if scenario.away {
            self.section(Section::SliceOver(id));
        }
        if scenario.spins && self.state.spinning == NOBODY {
            self.out.push(Step::Spin(id));
        }
    }

    fn dying(&mut self, id: Id, stage: Stage) {
        let agent = self.state.agent(id);
        match agent.at {
            At::Draining(_) => return self.out.push(Step::Drain(id)),
            At::Claiming(_) => return self.section(Section::Claim(id)),
            _ => {}
        }
        match stage {
            Stage::Leave => {
                self.section(Section::Leave(id));
                self.turn(id, agent);
            }
            Stage::Mark => self.out.push(Step::Mark(id)),
            Stage::Scan => self.section(Section::Scan(id)),
        }
    }

    fn deliveries(&mut self) {
        if self.protocol.scenario.other_words {
            let waits = |id: &Id| self.state.queue.group_size(*id) > 0 && !self.state.agent(*id).group.scheduled;
            self.out.extend(self.state.ids().filter(waits).map(Step::CallElsewhere));
        }
        for (thread, outbox) in self.state.outboxes.iter().enumerate() {
            let thread = thread as Id;
            if self.state.is_in_section(thread) {
            } else if outbox.ring != NOBODY {
                self.out.push(Step::Ring(thread));
            } else if outbox.has_pushes() {
                self.out.push(Step::Push(thread));
            }
        }
    }

    fn clock(&mut self) {
        if let Some(Frozen { section, .. }) = self.state.bucket {
            self.out.push(Step::Run(section));
        }
        if self.protocol.lease_may_end(self.state) && !self.state.is_occupied(TIMER) {
            self.section(Section::LeaseOver);
        }
        if self.state.queue.any_to_age(self.protocol.scenario.bound == Bound::LeaseGrows) {
            self.out.push(Step::Age);
        }
        if self.state.cool {
            self.out.push(Step::Cool);
        }
        if self.state.spinning != NOBODY {
            self.out.push(Step::SpinOver);
        }
    }
}
