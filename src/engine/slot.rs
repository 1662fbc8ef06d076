//! A slot of the register of holds (see [`super::register`]).

use std::ptr::NonNull;

use super::primitive::{Counts, HoldOwner};
use crate::agents::AgentId;
use crate::sync::{AtomicU32, Ordering};

/// The place where an agent's JS and the core count what it holds of one primitive.
#[derive(Clone, Copy)]
pub struct Slot {
    /// The agent's.
    pub agent: AgentId,
    at: NonNull<[AtomicU32; 2]>,
    /// The holds that it has beside a wait, which the clock may take back: not its code's yet, and changed under the lock of the
    /// bucket.
    pub(super) beside: Counts,
}

// SAFETY: it is an address; all access goes through atomics, which any thread may use.
unsafe impl Send for Slot {}

impl Slot {
    /// The slot of an agent at `at`.
    ///
    /// # Safety
    ///
    /// `at` is aligned to 4, readable and writable, zero, and stays so until the agent has ended (see
    /// [`Engine::thread_ended`]) or the slot is freed; only the agent's thread changes it.
    pub const unsafe fn new(agent: AgentId, at: NonNull<[AtomicU32; 2]>) -> Self {
        Self { agent, at, beside: Counts { raw: 0, guarded: 0 } }
    }

    fn counts(&self) -> &[AtomicU32; 2] {
        // SAFETY: live and atomic by the contract of `new`.
        unsafe { self.at.as_ref() }
    }

    /// Returns its counts: exact on its own thread, and when that has ended; a snapshot elsewhere.
    pub fn read(&self) -> Counts {
        // Relaxed: read on its own thread, or for people.
        let [raw, guarded] = self.counts().each_ref().map(|count| count.load(Ordering::Relaxed));
        Counts { raw: raw + self.beside.raw, guarded: guarded + self.beside.guarded }
    }

    /// The same, and what another of the same agent and lock had beside a wait.
    pub(super) fn with_what_is_beside(self, Self { beside, .. }: Self) -> Self {
        Self { beside, ..self }
    }

    /// Puts so many beside a wait. On its own thread.
    pub(super) fn set_aside(&mut self, owner: HoldOwner, count: u32) {
        self.change(owner, |held| held.saturating_sub(count));
        *self.aside(owner) += count;
    }

    /// Takes so many from beside a wait; returns how many there were.
    pub(super) fn take_from_aside(&mut self, owner: HoldOwner, count: u32) -> u32 {
        let aside = self.aside(owner);
        let taken = count.min(*aside);
        *aside -= taken;
        taken
    }

    fn aside(&mut self, owner: HoldOwner) -> &mut u32 {
        match owner {
            HoldOwner::Thread => &mut self.beside.raw,
            HoldOwner::Guard => &mut self.beside.guarded,
        }
    }

    pub(super) fn change(&self, owner: HoldOwner, change: impl FnOnce(u32) -> u32) {
        let count = match owner {
            HoldOwner::Thread => &self.counts()[0],
            HoldOwner::Guard => &self.counts()[1],
        };
        // Relaxed: nobody else writes it, and others read snapshots.
        count.store(change(count.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}
