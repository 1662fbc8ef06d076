//! Spinning for some microseconds before a thread sleeps, in case the lock comes meanwhile.
//!
//! First unqueued, then, if holds are long enough for that to pay, queued (see [`super::parker`]).
//! Nothing relies on it: without it the lock is correct too, and slower.

use std::time::Duration;

use super::contents::Bucket;
use super::primitive::{Hold, Primitive, Request, Space};
use super::table::Engine;
use crate::agents::AgentId;
use crate::memory::Place;
use crate::sync::{self, Ordering};

impl Engine {
    /// Spins until `agent` has got in, for a few microseconds at most; true if it has. One thread for each bucket, so
    /// that spinners do not fight; not while W says that others wait, unless to see whether holds are still long; not on
    /// one processor, where the holder cannot go on.
    ///
    /// A lock that was free for one look only is left to the thread that runs: a thread that unlocks and locks in a loop
    /// gets more done than two that take turns, and others get their turn by [`super::patience::Patience`].
    pub(crate) fn spin(&self, agent: AgentId, primitive: &dyn Primitive, place: Place, request: Request) -> bool {
        if !pays(self.patience.spin) {
            return false;
        }
        let Some(hold) = request.hold() else { return false };
        let Some(mut last) = primitive.glance(place, hold) else { return false };
        let Bucket { has_spinner, holds, .. } = self.bucket(Space::Words, place.address());
        // Relaxed, here and below: hints that guard no data.
        if has_spinner.swap(true, Ordering::Relaxed) {
            return false;
        }
        let mut spin = sync::Spin::new(self.patience.spin);
        let mut is_steady = last.held != 0;
        let entered = loop {
            let Some(seen) = primitive.glance(place, hold) else { break false };
            if seen.is_free && last.is_free && primitive.try_enter(place, request, agent) {
                holds.note(|long| long.saturating_sub(1));
                break true;
            }
            if seen.is_waiting && !holds.are_long() {
                break false;
            }
            if seen.is_shared && hold.is_shared() {
                break false;
            }
            is_steady &= seen.held == last.held;
            last = seen;
            if !spin.goes_on(sync::nanoseconds()) {
                holds.note(|long| if is_steady { long + 1 } else { long.saturating_sub(2) });
                break false;
            }
        };
        has_spinner.store(false, Ordering::Relaxed);
        entered
    }

    /// Returns the time for which a waiter spins once it is queued; `None` if that would not pay.
    pub(crate) fn queued_spin_time(&self, place: Place) -> Option<Duration> {
        let time = self.patience.spin_queued;
        (self.bucket(Space::Words, place.address()).holds.are_long() && pays(time)).then_some(time)
    }

    /// Spins until the primitive is reserved, for as long as a sleep and a wake-up would cost; true if it is.
    pub(crate) fn spin_until_reserved(&self, primitive: &dyn Primitive, place: Place) -> bool {
        // The section that follows decides.
        let look = |_| primitive.glance(place, Hold::PASSAGE).is_some_and(|seen| seen.is_reserved);
        !primitive.is_divided() && pays(self.patience.spin_queued) && sync::spin_until(self.patience.spin_queued, look)
    }
}

/// Whether spinning for so long may be of use at all.
fn pays(time: Duration) -> bool {
    !time.is_zero() && sync::has_several_processors()
}
