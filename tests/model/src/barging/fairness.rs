//! The agents that are sure to go on. Weak fairness: what is due in every state of an endless run happens in it, again and again.
//! An action that is not due here (calls, timeouts, aborts, deaths, a busy loop's return, the return from being away) may never
//! come.

use super::agent::{At, Hold, Id, Life, TIMER, Thread, Verb};
use super::queue::Way;
use super::scenario::Bound;
use super::setting::Barging;
use super::state::State;
use super::step::{Section, Step};
use crate::check;

/// Somebody or something that goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// The native code of a thread.
    Native(Id),
    /// A holder's code, which unlocks some time.
    Unlock(Id),
    /// An event loop.
    Turn(Id),
    Cleanup(Id),
    Delivery(Thread),
    Lease,
    Age,
    Cool,
    /// Never due: this thread asks for the lock by a blocking verb.
    Blocking(Id),
}

impl Class {
    fn number(self) -> check::Class {
        check::Class(match self {
            Class::Native(id) => id,
            Class::Unlock(id) => 8 + id,
            Class::Turn(id) => 16 + id,
            Class::Cleanup(id) => 24 + id,
            Class::Delivery(thread) => 32 + thread,
            Class::Blocking(id) => 40 + id,
            Class::Lease => 48,
            Class::Age => 49,
            Class::Cool => 50,
        })
    }
}

/// Returns the class of what may go on for ever without any right of this thread's tasks to be served.
pub fn blocking(id: Id) -> check::Class {
    Class::Blocking(id).number()
}

/// Which class a step belongs to, if it is one that comes by itself.
pub fn class(step: Step) -> Option<check::Class> {
    let class = match step {
        Step::Look(id) | Step::Accept(id) => Class::Native(id),
        Step::Call(id, Verb::Unlock) => Class::Unlock(id),
        Step::Call(id, Verb::Lock | Verb::TryLock) => Class::Blocking(id),
        Step::Drain(id) => Class::Turn(id),
        Step::Mark(id) => Class::Cleanup(id),
        Step::Push(thread) | Step::Ring(thread) => Class::Delivery(thread),
        Step::Age => Class::Age,
        Step::Cool => Class::Cool,
        Step::Run(Section::Verb(id) | Section::Woken(id)) => Class::Native(id),
        Step::Run(Section::Claim(id) | Section::ClaimOrPark(id) | Section::ParkOver(id)) => Class::Turn(id),
        Step::Run(Section::Leave(id) | Section::Scan(id)) => Class::Cleanup(id),
        Step::Run(Section::LeaseOver) => Class::Lease,
        _ => return None,
    };
    Some(class.number())
}

/// Returns what is sure to go on some time from this state. The bucket's lock is fair, so waiting for it does not count.
pub fn due(protocol: &Barging, state: &State) -> check::Classes {
    let mut due = Due(check::Classes::default());
    for id in state.ids() {
        let agent = state.agent(id);
        due.add_if(!state.outboxes[id as usize].is_done(), Class::Delivery(id));
        match agent.life {
            Life::Gone => continue,
            Life::Dying(_) => {
                due.add_if(true, Class::Cleanup(id));
                due.add_if(matches!(agent.at, At::Draining(_) | At::Claiming(_)), Class::Turn(id));
                continue;
            }
            Life::Running => {}
        }
        let woken = state.queue.find(id, Way::Blocked).is_some_and(|w| w.woken);
        let in_call = matches!(agent.at, At::Calling(_) | At::Decided(..) | At::Returning);
        let granted = agent.at == At::Parked && agent.hold == Hold::Granted;
        due.add_if(in_call || granted || agent.at == At::Parked && woken, Class::Native(id));
        // Also if it waits for itself at the moment: that has a deadline, and a holder that never unlocks is no lock's fault.
        due.add_if(agent.hold == Hold::Inside && !protocol.scenario.endless_holds, Class::Unlock(id));
        // A loop that turns at all turns again and again, also between a thread's native calls.
        let called = if protocol.scenario.split_offers { agent.group.called } else { agent.group.offered };
        let draining = matches!(agent.at, At::Draining(_) | At::Claiming(_));
        due.add_if((called || draining) && agent.turns(), Class::Turn(id));
        // Its sleep ends by itself.
        let wakes = agent.hold == Hold::Granted || protocol.park_may_end(state, id);
        due.add_if(matches!(agent.at, At::Asleep(_)) && wakes, Class::Turn(id));
    }
    due.add_if(!state.outboxes[TIMER as usize].is_done(), Class::Delivery(TIMER));
    due.add_if(protocol.lease_may_end(state), Class::Lease);
    due.add_if(state.queue.any_to_age(protocol.scenario.bound == Bound::LeaseGrows), Class::Age);
    due.add_if(state.cool, Class::Cool);
    due.0
}

struct Due(check::Classes);

impl Due {
    fn add_if(&mut self, due: bool, class: Class) {
        self.0.add_if(due, class.number());
    }
}
