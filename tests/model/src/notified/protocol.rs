//! The steps as a state machine for stateright.

use stateright::{Model, Property};

use super::fault::Fault;
use super::line::Line;
use super::safety;
use super::setting::{Notified, Role};
use super::state::{Agent, At, State};
use crate::check::Protocol;
use crate::primitives::{Id, Mutex};

/// The number of waits after which one that takes items gives up.
const MOST_WAITS: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The next thing that this thread's code does.
    Next(Id),
    /// The thread of a notified waiter comes for it.
    Learn(Id),
    Timeout(Id),
    /// The thread ends.
    End(Id),
    Cleanup(Id),
}

impl Notified {
    fn is_enabled(&self, s: &State, id: Id) -> bool {
        let agent = s.agent(id);
        let can_lock = s.lock.grant(id).is_some();
        match (agent.at, self.role(id)) {
            (At::Js, Role::Waits(most)) => agent.done < most && s.value == 0,
            (At::Js, Role::Takes(most) | Role::Puts(most)) => agent.done < most && can_lock,
            (At::Js, Role::Notifies(most, _)) => agent.done < most,
            (At::Js, Role::Sets) => agent.done < 1,
            (At::Relocking(_), _) => can_lock,
            (At::Waiting | At::Dying | At::Gone, _) => false,
            _ => true,
        }
    }

    fn next(&self, s: &mut State, id: Id) {
        let Agent { at, .. } = *s.agent(id);
        let after = match (at, self.role(id)) {
            (At::Js, Role::Waits(_)) if self.has(Fault::ComparesBeforeLocking) => At::Compared,
            (At::Js, Role::Waits(_)) | (At::Compared, _) => self.wait(s, id, At::Waiting),
            (At::Js, Role::Takes(_) | Role::Puts(_)) => lock(s, id),
            (At::Js, Role::Notifies(_, count)) => self.notify(s, id, count),
            (At::Js, Role::Sets) => {
                s.value = 1;
                At::Changed
            }
            (At::Inside, Role::Puts(_)) => {
                s.value += 1;
                At::Changed
            }
            (At::Changed, Role::Puts(_)) => {
                s.lock = s.lock.release();
                self.notify(s, id, 1)
            }
            (At::Changed, _) => self.notify(s, id, usize::MAX),
            (At::Inside, _) if s.value > 0 => {
                s.value -= 1;
                s.lock = s.lock.release();
                s.agent_mut(id).done += 1;
                At::Js
            }
            (At::Inside, _) if s.agent(id).waits == MOST_WAITS => {
                s.lock = s.lock.release();
                s.agent_mut(id).done = u8::MAX;
                At::Js
            }
            (At::Inside, _) if self.has(Fault::UnlocksBeforeQueueing) => {
                s.lock = s.lock.release();
                At::Unlocked
            }
            (At::Inside, _) => self.wait(s, id, At::Queued),
            (At::Unlocked, _) => self.wait(s, id, At::Waiting),
            (At::Queued, _) => {
                s.lock = s.lock.release();
                At::Waiting
            }
            (At::Relocking(knows), _) => {
                if let Some(waiter) = s.line.take(id).filter(|_| knows) {
                    s.learned.push(waiter.ticket);
                }
                lock(s, id)
            }
            (At::Waiting | At::Dying | At::Gone, _) => at,
        };
        s.agent_mut(id).at = after;
    }

    fn wait(&self, s: &mut State, id: Id, at: At) -> At {
        if matches!(self.role(id), Role::Waits(_)) {
            s.agent_mut(id).done += 1;
        }
        s.agent_mut(id).waits += 1;
        s.line.push(id);
        at
    }

    fn notify(&self, s: &mut State, id: Id, count: usize) -> At {
        s.agent_mut(id).done += 1;
        let before = s.line.next_ticket;
        let notified = s.line.notify(count, self.fault);
        s.given.extend((0..notified).map(|_| before));
        At::Js
    }

    fn is_condition(&self, id: Id) -> bool {
        matches!(self.role(id), Role::Takes(_))
    }

    /// A condition's waiter keeps its notification in the line until it holds the lock again.
    fn learn(&self, s: &mut State, id: Id) {
        if self.is_condition(id) && !self.has(Fault::LearnsBeforeRelock) {
            s.agent_mut(id).at = At::Relocking(true);
            return;
        }
        if let Some(waiter) = s.line.take(id) {
            s.learned.push(waiter.ticket);
        }
        s.agent_mut(id).at = if self.is_condition(id) { At::Relocking(false) } else { At::Js };
    }

    /// Too late once it is notified.
    fn time_out(&self, s: &mut State, id: Id) {
        let is_notified = s.line.find(id).is_some_and(|waiter| waiter.notified.is_some());
        if is_notified && !self.has(Fault::TimeoutAfterNotification) {
            return self.learn(s, id);
        }
        s.line.take(id);
        s.agent_mut(id).at = if self.is_condition(id) { At::Relocking(false) } else { At::Js };
    }

    fn end(&self, s: &mut State, id: Id) {
        s.deaths += 1;
        let at = s.agent(id).at;
        // The rest, which its code knew, or was about to see with the lock in its hands, is its own business.
        let takes_again = self.is_condition(id) && matches!(at, At::Inside);
        s.excused |= takes_again || matches!(at, At::Changed) || s.lock.owner == id;
        s.agent_mut(id).at = At::Dying;
    }

    fn clean_up(&self, s: &mut State, id: Id) {
        if let Some(waiter) = s.line.take(id)
            && let Some(notification) = waiter.notified
        {
            s.line.pass_on(waiter.ticket, notification, self.fault);
        }
        if s.lock.owner == id {
            s.lock = s.lock.release();
        }
        s.agent_mut(id).at = At::Gone;
    }
}

fn lock(s: &mut State, id: Id) -> At {
    s.lock = s.lock.grant(id).unwrap_or(s.lock);
    At::Inside
}

impl Model for Notified {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            line: Line::default(),
            lock: Mutex::default(),
            value: 0,
            agents: self.roles.iter().map(|_| Agent::default()).collect(),
            deaths: 0,
            given: Default::default(),
            learned: Default::default(),
            excused: false,
        }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        for id in s.ids() {
            let at = s.agent(id).at;
            if self.is_enabled(s, id) {
                steps.push(Step::Next(id));
            }
            if at == At::Waiting {
                if s.line.find(id).is_some_and(|waiter| waiter.notified.is_some()) {
                    steps.push(Step::Learn(id));
                }
                if self.quits {
                    steps.push(Step::Timeout(id));
                }
            }
            if at == At::Dying {
                steps.push(Step::Cleanup(id));
            } else if at != At::Gone && s.deaths < self.deaths {
                steps.push(Step::End(id));
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        match step {
            Step::Next(id) => self.next(&mut s, id),
            Step::Learn(id) => self.learn(&mut s, id),
            Step::Timeout(id) => self.time_out(&mut s, id),
            Step::End(id) => self.end(&mut s, id),
            Step::Cleanup(id) => self.clean_up(&mut s, id),
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        safety::properties()
    }
}

/// Everything here ends, so that what must come some time is asked of the states in which nothing is left to do.
impl Protocol for Notified {
    type Waiter = ();

    fn name(&self) -> &str {
        &self.name
    }

    fn show(&self, s: &State) -> String {
        let waiters: Vec<String> = s
            .line
            .waiters
            .iter()
            .map(|w| format!("{}#{}{}", w.agent, w.ticket, if w.notified.is_some() { "!" } else { "" }))
            .collect();
        let agents: Vec<String> = s.ids().map(|id| format!("{id} {:?}", s.agent(id).at)).collect();
        format!(
            "{} lock {} [{}] given {:?} | {}",
            s.value,
            s.lock.owner,
            waiters.join(" "),
            s.given,
            agents.join(" | ")
        )
    }
}
