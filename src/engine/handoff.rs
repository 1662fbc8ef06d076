//! Waiters get in when a primitive is released, a waiter leaves, or a lease is over: in an order that is fair.
//!
//! *Barging*: a loop is *offered* what is free (a notice in its inbox) and *claims* it on its own thread, where an abort,
//! a timeout and the claim cannot race; a loop that came and could not be let in parks for a moment, to be handed over to
//! directly, or has it *reserved* for it for the time of a *lease*. A blocked thread is woken and tries; once it has aged,
//! or while it is seen spinning, it is handed over to directly. Shared holders go in together. For one that
//! has aged and asks for several, they are *gathered*: those behind it wait until it has them. A loop is asked first whether it comes.
//!
//! *Strict*: grants go down the queue, to loops too, for as long as the primitive lets them in.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::contents::Contents;
use super::patience::Patience;
use super::primitive::{Hold, Order, State};
use super::queue::{Kind, Queue, Reservation, Turn, WaiterId, Waiters};
use super::section::Section;
use crate::sync;

/// The next step of the hand-off.
enum Next {
    /// One got in; perhaps another can.
    Again,
    /// No other is to get in.
    Done,
}

impl Section<'_> {
    /// The one way on when somebody may get in; nothing if nobody can.
    pub(crate) fn hand_off(&mut self) {
        let step = match self.primitive.order() {
            Order::Barging => Self::hand_off_barging,
            Order::Strict => Self::hand_off_strictly,
            Order::Notified => return,
        };
        while let Next::Again = step(self) {
            if fault!(BatchStopsAfterOne) {
                break;
            }
        }
    }

    fn hand_off_strictly(&mut self) -> Next {
        let first =
            self.contents.queues.get(&self.place.address()).and_then(|queue| queue.first(&self.contents.waiters));
        let Some(first) = first else { return Next::Done };
        if self.primitive.refuses(self.state) {
            let refusal = self.refusal();
            self.contents.settle(self.place.address(), first, refusal, &mut self.wakes);
            return Next::Again;
        }
        match self.grant_to(first) {
            Some(state) => self.grant(first, state),
            None => Next::Done,
        }
    }

    fn hand_off_barging(&mut self) -> Next {
        let (address, patience, primitive, state) =
            (self.place.address(), self.engine.patience, self.primitive, self.state);
        let Some((queue, waiters)) = self.contents.queue(address) else { return Next::Done };
        let blocked = queue.first_blocked(waiters);
        let is_reserved = queue.reservation.is_some();
        let kept_since = queue.kept_since;

        for group in queue.groups_ahead_of(waiters, blocked) {
            let first = group.first();
            let hold = hold_of(waiters, first);
            // Held, or shared, and it asks for it alone: those behind it do not pass it by, or it would starve. But they pass one
            // that could have come, and has not.
            let Some(granted) = primitive.grant(state, hold, group.agent.id) else {
                if matches!(group.turn, Turn::Idle) && hold.gathers() && !fault!(GathersForALoopUnasked) {
                    // They are gathered for a loop that comes.
                    self.wakes.offer(Arc::clone(&group.agent), address);
                    group.turn = Turn::Offered;
                }
                if group.has_not_come() && !fault!(ReadersWaitForAStalledLoop) || fault!(PassesAClaimedWriter) {
                    continue;
                }
                return Next::Done;
            };
            let came_in_vain = matches!(group.turn, Turn::Claimed | Turn::Owed);
            match group.turn {
                Turn::Parked(_) if fault!(ParkedLoopIsPassedBy) => continue,
                Turn::Parked(_) => return self.grant(first, granted),
                Turn::Offered => continue,
                Turn::Owed if is_reserved => continue,
                // The offer is in its inbox already.
                Turn::Owed => {}
                Turn::Idle | Turn::Claimed => self.wakes.offer(Arc::clone(&group.agent), address),
            }
            let may_reserve = came_in_vain && !group.agent.is_blocked() && !patience.lease.is_zero();
            // One reservation at a time: others that came in vain have theirs afterwards.
            let is_owed = may_reserve && is_reserved && !fault!(OneLeaseForManyReaders);
            group.turn = if is_owed { Turn::Owed } else { Turn::Offered };
            if fault!(OffersToFirstLoopOnly) {
                return Next::Done;
            }
            if may_reserve
                && !is_reserved
                && let Some(reserved) = primitive.reserve(state, hold)
                && let now = sync::now()
                && let kept_since = kept_since.unwrap_or(now)
                && let longest = blocked.map(|_| kept_since + patience.longest_kept)
                && longest.is_none_or(|longest| longest > now || fault!(LeasesAddUp))
            {
                let (agent, generation) = (group.agent.id, self.engine.serial());
                let until = now + lease(patience, sync::since(waiters[first].since));
                let until = longest.filter(|_| !fault!(LeasesAddUp)).map_or(until, |longest| until.min(longest));
                queue.reservation = Some(Reservation { agent, hold, generation, until });
                queue.kept_since = Some(kept_since);
                self.state = reserved;
                self.wakes.lease(address, generation, until);
                // Others that share it enter beside a loop that will share it.
                return Next::Again;
            }
        }

        match blocked {
            Some(first) => self.hand_off_to_blocked(first),
            None => Next::Done,
        }
    }

    /// A thread blocks here: what is kept for a loop is so for no longer than a thread may have to wait for that.
    pub(super) fn bound_lease(&mut self) {
        let (longest, now) = (self.engine.patience.longest_kept, sync::now());
        let Some((Queue { kept_since: Some(since), reservation: Some(reservation), .. }, _)) = self.queue() else {
            return;
        };
        let (until, generation) = (*since + longest, reservation.generation);
        if until >= reservation.until || fault!(BlockerWaitsForTheLease) {
            return;
        }
        if until <= now {
            return self.end_lease(generation);
        }
        reservation.until = until;
        let address = self.place.address();
        self.wakes.lease(address, generation, until);
    }

    fn hand_off_to_blocked(&mut self, first: WaiterId) -> Next {
        let Some(granted) = self.grant_to(first) else { return Next::Done };
        let patience = self.engine.patience;
        let has_aged = self.has_aged(&self.contents.waiters[first]);
        let (queue, waiters) = self.contents.queue(self.place.address()).expect("a waiter has a queue");
        let hold = hold_of(waiters, first);
        if hold.is_shared() {
            return self.grant(first, granted);
        }
        let is_due = || {
            let is_over = |last| sync::since(last) >= patience.grant_every && !fault!(AgesOnceInAQueue);
            queue.last_aged_grant.is_none_or(is_over)
        };
        if has_aged && (hold.gathers() || is_due()) && !fault!(AgedWaiterIsOnlyWoken) {
            queue.last_aged_grant = Some(sync::now());
            return self.grant(first, granted);
        }
        if let Some(spinning) =
            queue.spinning.filter(|id| is_spinning(waiters, *id) && !fault!(SpinningWaiterIsPassedBy))
            && let Some(granted) = self.grant_to(spinning)
        {
            // It runs: it gets in without a system call, and without a moment in which nobody has it.
            return self.grant(spinning, granted);
        }
        self.wake_blocked(first);
        Next::Done
    }

    /// Wakes the first blocked waiter, and those behind it for whom there would still be something, unless they are woken already.
    fn wake_blocked(&mut self, first: WaiterId) {
        let (primitive, mut left) = (self.primitive, self.state);
        let (queue, waiters) = self.contents.queue(self.place.address()).expect("a waiter has a queue");
        if queue.anybody_woken() && !queue.is_divided {
            return;
        }
        let could_get_in = |id: &WaiterId| {
            let granted = primitive.grant(left, hold_of(waiters, *id), waiters[*id].agent);
            left = granted.unwrap_or(left);
            granted.is_some()
        };
        let to_wake: SmallVec<[WaiterId; 2]> =
            queue.counted_on(waiters).skip_while(|id| *id != first).take_while(could_get_in).collect();
        for id in to_wake {
            if let Kind::Blocked { parker, woken: false, .. } = &waiters[id].kind
                && !fault!(BlockedWaiterIsNotWoken)
            {
                self.wakes.unpark(Arc::clone(parker));
                queue.set_woken(waiters, id, true);
            }
        }
    }

    /// The state in which this waiter has what it asked for, if that can be.
    fn grant_to(&self, id: WaiterId) -> Option<State> {
        let waiter = &self.contents.waiters[id];
        self.primitive.grant(self.state, waiter.hold?, waiter.agent)
    }

    /// The waiter gets in.
    fn grant(&mut self, id: WaiterId, state: State) -> Next {
        let settlement = self.admit(state);
        let Contents { stats, waiters, .. } = &mut *self.contents;
        stats.handed_over(&waiters[id]);
        let (agent, hold) = (self.contents.waiters[id].agent, self.contents.waiters[id].hold);
        let is_alone = hold.is_some_and(Hold::is_exclusive);
        if let Some(hold) = hold {
            self.note_holder(agent, hold, settlement.report());
        }
        self.contents.settle(self.place.address(), id, settlement, &mut self.wakes);
        if is_alone { Next::Done } else { Next::Again }
    }
}

/// The time for which a lock is kept for a loop: a twentieth of what its waiter has waited, so that a busy loop holds up the
/// others by no more than that, and that the lease of one that waits for long covers its turn in the end.
fn lease(patience: Patience, waited: Duration) -> Duration {
    let longest = if fault!(LeaseWithoutBound) { Duration::MAX } else { patience.longest_lease };
    (waited / LEASE_SHARE).clamp(patience.lease, longest)
}

const LEASE_SHARE: u32 = 20;

/// Returns the hold that a waiter for a lock asked for.
fn hold_of(waiters: &Waiters, id: WaiterId) -> Hold {
    waiters[id].hold.expect("who waits for a lock waits to hold it")
}

/// Whether a blocked waiter is spinning at this moment.
fn is_spinning(waiters: &Waiters, id: WaiterId) -> bool {
    matches!(&waiters[id].kind, Kind::Blocked { parker, .. } if parker.is_spinning() || fault!(ParkedWaiterTakenForSpinning))
}
