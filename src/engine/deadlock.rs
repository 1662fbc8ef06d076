//! Finds blocking waits that can never end: a thread waits for every holder that stands in its way, and for those who
//! wait ahead of it where they stand in its way too. All of these waits have no timeout.

use std::sync::Arc;

use super::holders::Held;
use super::limit::Limit;
use super::primitive::{Blockers, Hold, Order};
use super::queue::{Kind, LoopGroup, Ticket, WaiterId};
use super::table::Engine;
use crate::agents::{Agent, AgentId, Blockage, ThreadId};

/// A step of a cycle: this thread waits for this lock, which the next thread of the cycle keeps from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The thread that waits.
    pub thread: ThreadId,
    /// The lock that it waits for, as its byte offset.
    pub byte_offset: usize,
    /// The kind of that lock.
    pub kind: &'static str,
}

/// A step of a cycle that is being looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Step {
    hop: Hop,
    /// That of its wait.
    serial: u64,
    address: usize,
    /// It only stands ahead of the step before, in the same queue: what that one waits for, the next one holds.
    is_in_line: bool,
}

type Cycle = Vec<Step>;

/// An agent in the way of a waiter.
#[derive(Clone, Copy)]
struct Blocker {
    agent: AgentId,
    /// It waits ahead; else it holds.
    is_ahead: bool,
}

impl Engine {
    /// The cycle that this wait of `me`, already queued, has closed. Then `me` no longer counts as blocked, so that no
    /// other thread reports the same cycle.
    ///
    /// A cycle can only be closed by a thread that begins to wait, so looking once, after queueing, is enough.
    /// It is read until it is the same twice: a thread whose wait has the same serial both times was blocked all the time in
    /// between, so that what it held and what it waited for were true at the same moment for all of them. If it is another one,
    /// somebody has closed a second cycle meanwhile, and the first may still stand.
    pub(crate) fn find_cycle(&self, me: &Arc<Agent>, blockage: Blockage) -> Option<Vec<Hop>> {
        if !blockage.endless || !self.may_be_stuck(me, blockage) {
            return None;
        }
        let _one_at_a_time = self.detecting.lock();
        let mut cycle = self.search(me, blockage)?;
        while !fault!(CycleIsReadOnce) {
            let before = std::mem::replace(&mut cycle, self.search(me, blockage)?);
            if cycle == before {
                break;
            }
            if fault!(SecondCycleHidesTheFirst) {
                return None;
            }
        }
        if !fault!(BothFindTheCycle) {
            me.set_blockage(None);
        }
        Some(cycle.into_iter().filter(|step| !step.is_in_line).map(|step| step.hop).collect())
    }

    /// The cycle that the thread of `me` has closed although it is blocked: code that it has run between two slices of its sleep
    /// has locked something, perhaps the very mutex that it waits for.
    pub fn find_cycle_in_pause(&self, me: &Arc<Agent>) -> Option<Vec<Hop>> {
        let blockage = me.blockage().filter(|blockage| blockage.endless)?;
        let cycle = if self.waits_for_itself(me.id, blockage) {
            vec![self.hop(me, blockage)]
        } else {
            self.find_cycle(me, blockage)?
        };
        if let Some(Ok(mut section)) = self.open_queued(blockage.address) {
            section.note_deadlock();
            section.finish();
        }
        Some(cycle)
    }

    fn hop(&self, waiter: &Agent, Blockage { address, byte_offset, .. }: Blockage) -> Hop {
        let kind = self.contents_at(address).queues.get(&address).map_or("Lock", |queue| queue.primitive.name());
        Hop { thread: waiter.thread, byte_offset, kind }
    }

    /// Whether this agent owns what it still waits for: then code that it has run since has locked it. In a strict order it may be
    /// let in while it is away, too; then it does not wait any more.
    fn waits_for_itself(&self, me: AgentId, blockage: Blockage) -> bool {
        let contents = self.contents_at(blockage.address);
        let Some(queue) = contents.queues.get(&blockage.address) else { return false };
        let is_queued = queue.blocked(&contents.waiters).any(|id| contents.waiters[id].agent == me);
        let blockers = queue.primitive.blockers(queue.primitive.read(queue.place));
        (is_queued || fault!(GrantInAPauseIsACycle)) && matches!(blockers, Blockers::Owner(owner) if owner == me)
    }

    /// Whether anybody whom `me` waits for is itself blocked: if not, the common case, there is no cycle.
    /// Each thread notes its own blockage before it reads others', under their locks: of two that close a cycle at the same
    /// time, at least one sees the other.
    fn may_be_stuck(&self, me: &Arc<Agent>, blockage: Blockage) -> bool {
        let mut blockers = self.blockers(me.id, blockage).into_iter();
        blockers.any(|Blocker { agent, .. }| self.agents.blockage(agent).is_some())
    }

    fn search(&self, me: &Arc<Agent>, blockage: Blockage) -> Option<Cycle> {
        let mut cycle = Vec::new();
        let mut seen = Vec::new();
        (self.walk(me, me, blockage, None, &mut cycle, &mut seen) && !fault!(CycleGoesUnnoticed)).then_some(cycle)
    }

    /// Follows those whom `waiter` waits for, depth first, until one of them is `me`. `behind` is the address of the queue in which
    /// it stands ahead of the step before, if it does.
    fn walk(
        &self,
        me: &Arc<Agent>,
        waiter: &Arc<Agent>,
        blockage: Blockage,
        behind: Option<usize>,
        cycle: &mut Cycle,
        seen: &mut Vec<u64>,
    ) -> bool {
        if !blockage.endless || seen.contains(&blockage.serial) {
            return false;
        }
        seen.push(blockage.serial);
        let Blockage { address, serial, .. } = blockage;
        let hop = self.hop(waiter, blockage);
        cycle.push(Step {
            hop,
            serial,
            address,
            is_in_line: behind == Some(address) && !fault!(CycleNamesThoseInLine),
        });
        for Blocker { agent, is_ahead } in self.blockers(waiter.id, blockage) {
            let length = cycle.len();
            let behind = is_ahead.then_some(address);
            // `me` itself, and a blocker that cannot run since `me` blocks their thread, have the blockage of `me`.
            let is_closed = self.agents.blockage(agent).is_some_and(|(next, blockage)| {
                next.id == me.id || self.walk(me, &next, blockage, behind, cycle, seen)
            });
            if is_closed && (is_ahead || !self.goes_back(agent, address)) {
                return true;
            }
            cycle.truncate(length);
        }
        false
    }

    /// Whether the clock gives back what `agent` holds at `address`, and no more than that: it is beside a wait with a deadline.
    fn goes_back(&self, agent: AgentId, address: usize) -> bool {
        let contents = self.contents_at(address);
        let count: u32 = contents.held(address).filter(|held| held.agent == agent).map(|held| held.count).sum();
        drop(contents);
        count <= 1
            && !fault!(TimedSetIsForEver)
            && self.buckets_of_requests().any(|bucket| {
                // Asked without the bucket's lock, which the clock takes behind theirs.
                let beside = bucket.contents.lock().beside_of(agent);
                beside.iter().any(|beside| beside.gives_back(address))
            })
    }

    /// Returns the agents that this blocked agent waits for; none if it was let in in the meantime. For shared holds these are
    /// their holders, and those who wait ahead of it for longer than a time.
    fn blockers(&self, waiter: AgentId, blockage: Blockage) -> Vec<Blocker> {
        let contents = self.contents_at(blockage.address);
        let Some(queue) = contents.queues.get(&blockage.address) else { return Vec::new() };
        let mut blockers = Vec::new();
        let holder = |agent| Blocker { agent, is_ahead: false };
        let ahead_of_it = |agent| Blocker { agent, is_ahead: true };
        match queue.primitive.blockers(queue.primitive.read(queue.place)) {
            Blockers::Anybody => return blockers,
            Blockers::Owner(owner) => {
                if owner == waiter {
                    return blockers;
                }
                blockers.push(holder(owner));
            }
            Blockers::Holders => {}
        }
        let waiters = &contents.waiters;
        let Some(mine) = queue.blocked(waiters).find(|id| waiters[*id].agent == waiter) else { return Vec::new() };
        let held: Vec<Held> = contents.held(blockage.address).collect();
        let is_strict = queue.primitive.order() == Order::Strict;
        if held.is_empty() && !is_strict {
            // A waiter ahead waits for the owner too: of a mutex nobody else is in the way.
            return blockers;
        }
        let is_ahead = |id: &WaiterId| waiters[*id].ticket() < waiters[mine].ticket();
        for id in queue.blocked(waiters).take_while(is_ahead).filter(|id| waiters[*id].limit == Limit::Endless) {
            if is_strict || !held.is_empty() && waiters[id].is_exclusive() {
                // It goes first, and waits for the holders itself.
                blockers.push(ahead_of_it(waiters[id].agent));
            }
        }
        // The clock ends what has a deadline; a signal aborts nothing while the thread of its loop is blocked.
        let is_stuck = |agent| self.agents.blockage(agent).is_some_and(|(_, blockage)| blockage.endless);
        let lasting_ahead = |group: &LoopGroup| {
            let counts = |revocable| group.anybody_lasts(revocable) || fault!(TimedWaitCountsForEver);
            let is_stuck = counts(true) && is_stuck(group.agent.id) && !fault!(BlockedLoopMayGiveUp);
            let lasts = move |id: &WaiterId| match waiters[*id].limit {
                Limit::Endless => true,
                Limit::Revocable => is_stuck,
                Limit::Until(_) | Limit::Once => fault!(TimedWaitCountsForEver),
            };
            let ahead = counts(is_stuck).then(|| group.waiters(waiters).take_while(is_ahead).filter(lasts));
            (ahead.into_iter().flatten(), is_stuck)
        };
        // The waiter for ever that came last before it is known since it came, so that long queues are not walked along; unless
        // that one is gone, or a loop is stuck.
        let behind = if let Kind::Blocked { behind, .. } = waiters[mine].kind { behind } else { None };
        let waits = |(ticket, id): &(Ticket, WaiterId)| {
            waiters.get(*id).is_some_and(|other| other.ticket() == *ticket && other.settlement.is_none())
        };
        let is_known = behind.is_none_or(|behind| waits(&behind));
        let groups = queue.groups().iter().map(lasting_ahead).filter(|(_, is_stuck)| *is_stuck || !is_known);
        let blocked = queue.blocked(waiters).take_while(is_ahead).filter(|id| waiters[*id].limit == Limit::Endless);
        let exclusive = groups.flat_map(|(ahead, _)| ahead).chain(blocked).filter(|id| waiters[*id].is_exclusive());
        let known = behind.filter(waits).map(|(ticket, _)| ticket);
        let last_exclusive = exclusive.map(|id| waiters[id].ticket()).chain(known).max();
        // Sharers go in together, unless one in between waits to hold it alone.
        let goes_in_beside = |id: WaiterId| {
            let shares = [mine, id].into_iter().all(|id| waiters[id].hold.is_some_and(Hold::is_shared));
            shares && last_exclusive.is_none_or(|last| waiters[id].ticket() > last) && !fault!(SharersAreInTheWay)
        };
        for group in queue.groups().iter().filter(|_| is_strict) {
            // The first of the sharers is the furthest ahead.
            if lasting_ahead(group).0.next().is_some_and(|first| !goes_in_beside(first)) {
                // It goes first, though its loop cannot come while its thread is blocked.
                blockers.push(ahead_of_it(group.agent.id));
            }
        }
        // A pending promise waits for the holders without a thread.
        let waits_for_holders =
            held.iter().any(|held| held.is_alone) || waiters[mine].is_exclusive() || last_exclusive.is_some();
        if waits_for_holders {
            blockers.extend(held.iter().map(|held| holder(held.agent)));
        }
        blockers
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::engine::hold::HoldOwner;
    use crate::engine::list::STEPS;
    use crate::engine::parker::Parker;
    use crate::engine::primitive::{Primitive, Request};
    use crate::engine::timers::NoClock;
    use crate::engine::{EventLoop, Limit, Outcome, Patience};
    use crate::memory::Place;
    use crate::primitives::mutex::MUTEX;
    use crate::primitives::once::ONCE;
    use crate::sync::{self, AtomicU32};

    /// The number of waiters that a blocked thread looks at, behind so many pending promises of this limit, each time that it
    /// looks.
    fn steps_to_look(primitive: &'static dyn Primitive, pending: usize, limit: Limit) -> u64 {
        let engine = Engine::new(1, 70_000, Patience::default(), Box::new(NoClock));
        let (holder, me) = (engine.agents.add(0).unwrap(), engine.agents.add(1).unwrap());
        let word = AtomicU32::new(0);
        // SAFETY: an aligned atomic that outlives all waits, which end below.
        let place = unsafe { Place::new(NonNull::from(&word), 0) };
        let hold = Hold::exclusive(HoldOwner::Thread);
        let held = engine.wait(&holder, primitive, place, Request::Hold(hold), Limit::Once, &mut || true);
        assert!(matches!(held, Ok(Outcome::Granted { .. })));
        let mut waits = EventLoop::new(&engine, engine.agents.add(2).unwrap());
        for _ in 0..pending {
            waits.wait(primitive, place, Request::Hold(hold), limit).unwrap();
        }
        let mut section = engine.open(primitive, place).unwrap();
        let parker = Arc::new(Parker::current());
        let id = section.push_blocked(me.id, parker, Some(hold), Limit::Endless, sync::now());
        section.finish();
        let blockage = Blockage { address: place.address(), byte_offset: 0, endless: true, serial: 1 };
        STEPS.set(0);
        assert!(engine.blockers(me.id, blockage).iter().any(|blocker| blocker.agent == holder.id));
        let steps = STEPS.get();
        engine.drop_waiter(primitive, place, id, crate::engine::stats::Leaving::Ending);
        waits.end();
        steps
    }

    #[test]
    fn who_blocks_looks_at_no_more_of_the_promises_that_are_pending_though_they_are_many() {
        let limits = [Limit::Endless, Limit::Revocable, Limit::after(std::time::Duration::from_secs(60))];
        for primitive in [&MUTEX as &'static dyn Primitive, &ONCE] {
            for limit in limits {
                let steps = [1, 1_000].map(|pending| steps_to_look(primitive, pending, limit));
                assert_eq!(steps[0], steps[1], "{} {limit:?}", primitive.name());
            }
        }
    }
}
