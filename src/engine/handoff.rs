//! How waiters get in when a primitive is released, a waiter leaves, or a lease is over: in an order that is fair.
//!
//! *Barging*: a loop is *offered* what is free (a notice in its inbox) and *claims* it on its own thread, where an abort,
//! a timeout and the claim cannot race; a loop that came and could not be let in parks for a moment, to be handed over to
//! directly, or has it *reserved* for it for the time of a *lease*. A blocked thread is woken and tries; once it has aged,
//! or while it is seen spinning, it is handed over to directly. Shared holders go in together.
//!
//! *Strict*: grants go down the queue, to loops too, for as long as the primitive lets them in.

use std::sync::Arc;
use std::time::Duration;

use super::primitive::{Hold, Mode, Order, State};
use super::queue::{Kind, Reservation, Settlement, Turn, WaiterId, Waiters};
use super::section::Section;
use super::table::Patience;
use crate::sync;

/// How the hand-off goes on.
enum Next {
    /// Somebody got in; perhaps another can.
    Again,
    /// Nobody else is to get in.
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
            self.contents.settle(self.place.address(), first, Settlement::Refused, &mut self.wakes);
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

        for group in queue.groups_ahead_of(waiters, blocked) {
            let first = group.first();
            let hold = hold_of(waiters, first);
            // Held, or readers are in and it wants to write: those behind it do not pass it by, or it would starve.
            let Some(granted) = primitive.grant(state, hold, group.agent.id) else {
                if fault!(PassesAClaimedWriter) {
                    continue;
                }
                return Next::Done;
            };
            match group.turn {
                Turn::Parked(_) if fault!(ParkedLoopIsPassedBy) => continue,
                Turn::Parked(_) => return self.grant(first, granted),
                Turn::Offered => continue,
                Turn::Idle | Turn::Claimed => {}
            }
            let may_reserve =
                matches!(group.turn, Turn::Claimed) && !group.agent.is_blocked() && !patience.lease.is_zero();
            group.turn = Turn::Offered;
            self.wakes.offer(Arc::clone(&group.agent), address);
            if fault!(OffersToFirstLoopOnly) {
                return Next::Done;
            }
            if may_reserve && let Some(reserved) = primitive.reserve(state, hold) {
                let (agent, generation) = (group.agent.id, self.engine.serial());
                let waited = sync::since(waiters[first].since);
                queue.reservation = Some(Reservation { agent, generation });
                self.state = reserved;
                self.wakes.lease(address, generation, sync::now() + lease(patience, waited));
                return Next::Done;
            }
        }

        match blocked {
            Some(first) => self.hand_off_to_blocked(first),
            None => Next::Done,
        }
    }

    fn hand_off_to_blocked(&mut self, first: WaiterId) -> Next {
        let Some(granted) = self.grant_to(first) else { return Next::Done };
        let patience = self.engine.patience;
        let (queue, waiters) = self.contents.queue(self.place.address()).expect("a waiter has a queue");
        if hold_of(waiters, first).mode == Mode::Shared {
            return self.grant(first, granted);
        }
        let has_aged = sync::since(waiters[first].since) >= patience.grant_after;
        let is_due = || queue.last_aged_grant.is_none_or(|last| sync::since(last) >= patience.grant_every);
        if has_aged && is_due() && !fault!(AgedWaiterIsOnlyWoken) {
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
        let (queue, waiters) = self.contents.queue(self.place.address()).expect("a waiter has a queue");
        if !queue.anybody_woken() && !fault!(BlockedWaiterIsNotWoken) {
            queue.set_woken(waiters, first, true);
            if let Kind::Blocked { parker, .. } = &waiters[first].kind {
                self.wakes.unpark(Arc::clone(parker));
            }
        }
        Next::Done
    }

    /// The state in which this waiter has what it asked for, if that can be.
    fn grant_to(&self, id: WaiterId) -> Option<State> {
        let waiter = &self.contents.waiters[id];
        self.primitive.grant(self.state, waiter.hold?, waiter.agent)
    }

    /// The waiter gets in.
    fn grant(&mut self, id: WaiterId, state: State) -> Next {
        self.state = state;
        let abandoned_by = self.take_report();
        self.contents.stats.handovers += u64::from(self.contents.waiters[id].is_blocking());
        let (agent, hold) = (self.contents.waiters[id].agent, self.contents.waiters[id].hold);
        let is_alone = hold.is_some_and(|hold| hold.mode == Mode::Exclusive);
        if let Some(hold) = hold {
            self.note_holder(agent, hold);
        }
        self.contents.settle(self.place.address(), id, Settlement::Granted { abandoned_by }, &mut self.wakes);
        if is_alone { Next::Done } else { Next::Again }
    }
}

/// How long a lock is kept for a loop: a twentieth of what its waiter has waited, so that a busy loop holds up the others
/// by no more than that, and that the lease of one that waits for long covers its turn in the end.
fn lease(patience: Patience, waited: Duration) -> Duration {
    let longest = if fault!(LeaseWithoutBound) { Duration::MAX } else { patience.longest_lease };
    (waited / LEASE_SHARE).clamp(patience.lease, longest)
}

const LEASE_SHARE: u32 = 20;

/// What a waiter for a lock asked for.
fn hold_of(waiters: &Waiters, id: WaiterId) -> Hold {
    waiters[id].hold.expect("who waits for a lock waits to hold it")
}

/// Whether a blocked waiter is spinning at this moment.
fn is_spinning(waiters: &Waiters, id: WaiterId) -> bool {
    matches!(&waiters[id].kind, Kind::Blocked { parker, .. } if parker.is_spinning() || fault!(ParkedWaiterTakenForSpinning))
}
