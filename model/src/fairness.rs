//! Who is sure to go on. Weak fairness: what is due in every state of an endless run happens in it, again and again.
//! What is not due here (calls, timeouts, aborts, deaths, a busy loop's return, the return from being away) may never come.

use crate::agent::{At, Hold, Id, Life};
use crate::enabled::lease_may_end;
use crate::protocol::Protocol;
use crate::queue::Way;
use crate::state::{State, TIMER, Thread};
use crate::step::{Section, Step};

/// Somebody or something that goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
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

/// A set of classes, one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(pub u64);

impl Classes {
    fn bit(class: Class) -> u64 {
        let number = match class {
            Class::Native(id) => id,
            Class::Unlock(id) => 8 + id,
            Class::Turn(id) => 16 + id,
            Class::Cleanup(id) => 24 + id,
            Class::Delivery(thread) => 32 + thread,
            Class::Blocking(id) => 40 + id,
            Class::Lease => 48,
            Class::Age => 49,
            Class::Cool => 50,
        };
        1 << number
    }

    pub fn add_if(&mut self, due: bool, class: Class) {
        if due {
            self.0 |= Self::bit(class);
        }
    }
}

/// Which class a step belongs to, if it is one that comes by itself.
pub fn class(step: Step) -> Option<Class> {
    use crate::agent::Verb;
    Some(match step {
        Step::Look(id) | Step::Accept(id) => Class::Native(id),
        Step::Call(id, Verb::Unlock) => Class::Unlock(id),
        Step::Call(id, Verb::Lock | Verb::TryLock) => Class::Blocking(id),
        Step::Drain(id) => Class::Turn(id),
        Step::Mark(id) => Class::Cleanup(id),
        Step::Push(thread) | Step::Ring(thread) => Class::Delivery(thread),
        Step::Age => Class::Age,
        Step::Cool => Class::Cool,
        Step::Run(Section::Verb(id) | Section::Woken(id)) => Class::Native(id),
        Step::Run(Section::Claim(id)) => Class::Turn(id),
        Step::Run(Section::Leave(id) | Section::Scan(id)) => Class::Cleanup(id),
        Step::Run(Section::LeaseOver) => Class::Lease,
        _ => return None,
    })
}

/// What is sure to go on some time from this state. The bucket's lock is fair, so waiting for it does not count.
pub fn due(protocol: &Protocol, state: &State) -> Classes {
    let mut due = Classes::default();
    for id in state.ids() {
        let agent = state.agent(id);
        due.add_if(!state.errands[id as usize].is_done(), Class::Delivery(id));
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
        due.add_if(agent.hold == Hold::Inside, Class::Unlock(id));
        // A loop that turns at all turns again and again, also between a thread's native calls.
        let called = if protocol.scenario.split_offers { agent.party.called } else { agent.party.offered };
        let draining = matches!(agent.at, At::Draining(_) | At::Claiming(_));
        due.add_if((called || draining) && agent.turns(), Class::Turn(id));
    }
    due.add_if(!state.errands[TIMER as usize].is_done(), Class::Delivery(TIMER));
    due.add_if(lease_may_end(protocol, state), Class::Lease);
    due.add_if(state.queue.iter().any(|w| w.is_blocked() && !w.aged), Class::Age);
    due.add_if(state.cool, Class::Cool);
    due
}
