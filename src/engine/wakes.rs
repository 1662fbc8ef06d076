//! Wake-ups that a section decided on, carried out once the bucket's lock is released: a wake-up is a system call, and
//! whoever is woken needs that lock.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::parker::Parker;
use super::timers::Timers;
use crate::agents::{Agent, Notice};

enum WakeUp {
    Unpark(Arc<Parker>),
    Turn(Arc<Agent>),
    Offer { agent: Arc<Agent>, address: usize },
    Lease { address: usize, generation: u64, until: Instant },
}

/// Wake-ups to be carried out.
#[derive(Default)]
#[must_use = "the threads to be woken wait for it"]
pub(crate) struct Wakes(SmallVec<[WakeUp; 2]>);

impl Wakes {
    pub(super) fn unpark(&mut self, parker: Arc<Parker>) {
        self.0.push(WakeUp::Unpark(parker));
    }

    /// The loop of `agent` must turn, for a notice that is in its inbox.
    pub(super) fn turn(&mut self, agent: Arc<Agent>) {
        self.0.push(WakeUp::Turn(agent));
    }

    pub(super) fn offer(&mut self, agent: Arc<Agent>, address: usize) {
        self.0.push(WakeUp::Offer { agent, address });
    }

    pub(super) fn lease(&mut self, address: usize, generation: u64, until: Instant) {
        self.0.push(WakeUp::Lease { address, generation, until });
    }

    /// Carries all of them out.
    pub(crate) fn carry_out(self, timers: &dyn Timers) {
        self.carry_out_beside(timers, None);
    }

    /// Carries all of them out, but for the loop of `here`, which only finds the offer in its inbox: it is about to drain
    /// it anyway.
    pub(crate) fn carry_out_beside(self, timers: &dyn Timers, here: Option<&Arc<Agent>>) {
        for wake in self.0 {
            match wake {
                WakeUp::Unpark(parker) => parker.unpark(),
                WakeUp::Turn(agent) => agent.wake(),
                WakeUp::Offer { agent, address } if here.is_some_and(|here| Arc::ptr_eq(here, &agent)) => {
                    agent.leave_notice(Notice::Offer(address));
                }
                WakeUp::Offer { agent, address } => agent.notify(Notice::Offer(address)),
                WakeUp::Lease { address, generation, until } => timers.lease(address, generation, until),
            }
        }
    }
}
