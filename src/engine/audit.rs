//! The audit: what holds of all queues and registers whenever no thread is inside a section. It is for tests (the cargo feature
//! `audit`), and finds what is left though nobody thought of it: each line says what is wrong, where, and whose it is.

use rustc_hash::{FxHashMap, FxHashSet};

use super::client::Client;
use super::contents::Contents;
use super::event_loop::{Delivery, EventLoop, PendingWait};
use super::primitive::Space;
use super::queue::{Kind, Queue, WaiterId, Waiters};
use super::table::Engine;
use super::timers::Deadline;
use crate::agents::{AgentId, Notice, Standing};
use crate::memory::Place;

/// Longer queues are looked at after a test only: a look at each section would cost their length.
const MOST: usize = 64;

impl Engine {
    /// Returns the faults that it finds. Not while a thread ends: then some of what it leaves is still there.
    pub fn audit(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut registered: FxHashSet<(AgentId, usize)> = FxHashSet::default();
        for (agent, places) in &*self.registers.lock() {
            let ended = self.is_of_the_past(*agent);
            for (primitive, place) in places.values() {
                let where_it_is = format!("of agent {agent} for the {} at {:#x}", primitive.name(), place.address());
                if ended {
                    wrong.push(format!("an address in the register {where_it_is}, which has ended"));
                }
                registered.insert((*agent, place.address()));
            }
        }
        for space in Space::ALL {
            for bucket in self.buckets(space) {
                let contents = bucket.contents.lock();
                contents.audit(|agent| self.is_of_the_past(agent), &mut wrong);
                contents.audit_offers(&mut wrong);
                for (address, agent) in contents.slots() {
                    if !registered.remove(&(agent, address)) {
                        wrong.push(format!("a slot of agent {agent} at {address:#x} that its register does not know"));
                    }
                }
            }
        }
        for deadline in self.timers.kept() {
            let Deadline { primitive, place, waiter, ticket, .. } = deadline;
            let contents = self.contents(primitive.space(), place.address());
            if contents.waiters.get(waiter).is_none_or(|found| found.ticket() != ticket) {
                let (name, address) = (primitive.name(), place.address());
                wrong.push(format!("a deadline of waiter {waiter} of the {name} at {address:#x}, which is gone"));
            }
        }
        wrong.extend(
            registered
                .iter()
                .map(|(agent, address)| format!("no slot of agent {agent} at {address:#x}, as its register says")),
        );
        wrong
    }

    /// Panics if the register of `agent` is not what its slots are. On its thread, which alone changes them.
    pub(super) fn check_register(&self, agent: AgentId) {
        let places = self.registers.lock().get(&agent).cloned().unwrap_or_default();
        for (primitive, place) in places.into_values() {
            let has_slot =
                self.contents(primitive.space(), place.address()).slots().any(|slot| slot == (place.address(), agent));
            assert!(
                has_slot,
                "no slot of agent {agent} for the {} at {:#x}, as its register says",
                primitive.name(),
                place.address()
            );
        }
    }

    /// Returns what is left at rest: once all agents have ended, nothing may be.
    pub fn left(&self) -> Vec<String> {
        let living = self.agents.living_but(&[]).into_iter().map(|thread| format!("an agent of thread {thread}"));
        let registers = self.registers.lock();
        let mut left: Vec<String> =
            living.chain(registers.keys().map(|agent| format!("a register of agent {agent}"))).collect();
        for space in Space::ALL {
            for bucket in self.buckets(space) {
                bucket.contents.lock().left(&mut left);
            }
        }
        left
    }

    fn is_of_the_past(&self, agent: AgentId) -> bool {
        self.agents.standing(agent) == Standing::Ended
    }
}

impl<C: Client> EventLoop<'_, C> {
    /// The waits whose place is used when they are settled: not those whose notification the thread has, and keeps.
    pub fn waits_for(&self) -> impl Iterator<Item = (u32, Place)> {
        let is_open = |wait: &PendingWait<C::Of>| wait.delivery != Delivery::KeptAndReturned;
        self.waits.iter().filter(move |(_, wait)| is_open(wait)).map(|(token, wait)| (token, wait.place))
    }
}

impl Contents {
    /// The slots: each by its address and whose it is.
    fn slots(&self) -> impl Iterator<Item = (usize, AgentId)> {
        self.slots.iter().flat_map(|(address, slots)| slots.iter().map(move |slot| (*address, slot.agent)))
    }

    fn audit(&self, has_ended: impl Fn(AgentId) -> bool, wrong: &mut Vec<String>) {
        let mut queued = FxHashMap::default();
        for (address, queue) in &self.queues {
            let what = format!("the {} at {address:#x}", queue.primitive.name());
            wrong
                .extend(queue.audit(&self.waiters).into_iter().map(|what_is_wrong| format!("{what}: {what_is_wrong}")));
            for (_, id) in queue.tickets(&self.waiters) {
                if queued.insert(id, address).is_some() {
                    wrong.push(format!("{what}: waiter {id} is queued twice"));
                }
            }
        }
        for (id, waiter) in self.waiters.iter() {
            let agent = waiter.agent;
            if waiter.settlement.is_none() && !queued.contains_key(&id) {
                wrong.push(format!("waiter {id}, of agent {agent}, is in no queue"));
            }
            if has_ended(agent) {
                wrong.push(format!("waiter {id} is of agent {agent}, which has ended"));
            }
        }
        let slots = self.slots.iter().map(|(address, slots)| (address, slots.len()));
        let listed = self.holders.iter().map(|(address, holders)| (address, holders.len()));
        wrong.extend(
            slots
                .chain(listed)
                .filter(|(_, len)| *len == 0)
                .map(|(at, _)| format!("an empty list of holders at {at:#x}")),
        );
        let holders = self.holders.iter().flat_map(|(address, all)| all.iter().map(move |one| (*address, one.agent)));
        for (address, agent) in self.slots().chain(holders).filter(|(_, agent)| has_ended(*agent)) {
            wrong.push(format!("agent {agent}, which has ended, still holds what is at {address:#x}"));
        }
    }

    /// Loops that know of an offer which is not in their inbox, while none of them drains it.
    fn audit_offers(&self, wrong: &mut Vec<String>) {
        for (address, queue) in &self.queues {
            for group in queue.groups().iter().filter(|group| group.has_not_come()) {
                if !group.agent.has_notice(Notice::Offer(*address)) {
                    let (agent, name) = (group.agent.id, queue.primitive.name());
                    wrong.push(format!(
                        "no offer in the inbox of loop {agent} for the {name} at {address:#x}, as its group says"
                    ));
                }
            }
        }
    }

    fn left(&self, left: &mut Vec<String>) {
        left.extend(
            self.queues.iter().map(|(at, queue)| format!("the queue of the {} at {at:#x}", queue.primitive.name())),
        );
        left.extend(self.waiters.iter().map(|(id, waiter)| format!("waiter {id} of agent {}", waiter.agent)));
        left.extend(self.slots().map(|(at, agent)| format!("a slot of agent {agent} at {at:#x}")));
        let holders = self.holders.iter().flat_map(|(at, all)| all.iter().map(move |one| (at, one.agent)));
        left.extend(holders.map(|(at, agent)| format!("agent {agent} holds what is at {at:#x}")));
    }

    /// Panics if the queue at `address` is wrong; when a section begins.
    pub(super) fn check_queue(&self, address: usize) {
        if let Some(queue) = self.queues.get(&address).filter(|queue| queue.len() <= MOST) {
            let wrong = queue.audit(&self.waiters);
            assert!(wrong.is_empty(), "the {} at {address:#x}: {}", queue.primitive.name(), wrong.join("; "));
        }
    }
}

impl Queue {
    fn audit(&self, waiters: &Waiters) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut expect = |is_so: bool, what: String| {
            if !is_so {
                wrong.push(what);
            }
        };
        let ids: Vec<WaiterId> = self.tickets(waiters).map(|(_, id)| id).collect();
        expect(!ids.is_empty(), "nobody waits, and its queue is there".into());
        expect(ids.len() == self.len(), format!("{} wait, and it counts {}", ids.len(), self.len()));
        for id in &ids {
            expect(waiters[*id].settlement.is_none(), format!("waiter {id} is settled, and queued"));
        }
        let woken = ids.iter().filter(|id| matches!(waiters[**id].kind, Kind::Blocked { woken: true, .. })).count();
        expect(woken as u32 == self.woken(), format!("{woken} are woken, and it counts {}", self.woken()));
        let tickets = |ids: &mut dyn Iterator<Item = WaiterId>| ids.map(|id| waiters[id].ticket()).collect::<Vec<_>>();
        expect(tickets(&mut self.blocked(waiters)).is_sorted(), "its threads are not in order".into());
        expect(self.groups().iter().map(|group| group.head_ticket).is_sorted(), "its loops are not in order".into());
        for group in self.groups() {
            let agent = group.agent.id;
            let own = tickets(&mut group.waiters(waiters));
            expect(own.is_sorted(), format!("the waits of loop {agent} are not in order"));
            expect(
                own.first() == Some(&group.head_ticket),
                format!("loop {agent} has another first wait than it says"),
            );
            let all_its = group.waiters(waiters).all(|id| waiters[id].agent == agent);
            expect(all_its, format!("loop {agent} has a wait of another"));
            expect(group.counts(waiters), format!("loop {agent} counts its endless waits wrong"));
        }
        if let Some(reservation) = &self.reservation {
            let has_group = self.groups().iter().any(|group| group.agent.id == reservation.agent);
            expect(has_group, format!("it is reserved for loop {}, which does not wait", reservation.agent));
        }
        if let Some(spinning) = self.spinning {
            expect(ids.contains(&spinning), format!("waiter {spinning}, which is not queued, is noted to spin"));
        }
        wrong
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::io;
    use std::ptr::NonNull;
    use std::time::Instant;

    use parking_lot::Mutex;

    use super::*;
    use crate::engine::clock::Clock;
    use crate::engine::timers::Timers;
    use crate::engine::{Hold, HoldOwner, Limit, Patience, Request};
    use crate::primitives::mutex::MUTEX;
    use crate::sync::AtomicU32;

    fn engine() -> Engine {
        Engine::new(1, 70_000, Patience::default(), Box::new(Clock::new(|| unreachable!("no time is kept"))))
    }

    /// Returns the audit's report of an engine in which a promise waits for a mutex, once `spoil` has had its bucket.
    fn audited(spoil: impl FnOnce(&Engine, &mut Contents, usize)) -> Vec<String> {
        let engine = engine();
        let words: [AtomicU32; 2] = Default::default();
        // SAFETY: aligned atomics that outlive the engine's use of them.
        let place = unsafe { Place::new(NonNull::from(&words).cast(), 0) };
        let [holder, waits] = [0, 1].map(|thread| engine.agents.add(thread).unwrap());
        let request = Request::Hold(Hold::exclusive(HoldOwner::Thread));
        engine.wait(&holder, &MUTEX, place, request, Limit::Once, &mut || true).unwrap();
        let mut section = engine.open(&MUTEX, place).unwrap();
        section.push_async(&waits, 0, request.hold(), Limit::Endless);
        section.finish();
        assert_eq!(engine.audit(), Vec::<String>::new());
        spoil(&engine, &mut engine.contents(Space::Words, place.address()), place.address());
        engine.audit()
    }

    /// Asserts that the report is one line, which has these words.
    fn says(wrong: &[String], words: &str) {
        assert!(matches!(wrong, [line] if line.contains(words)), "{words}: {wrong:?}");
    }

    #[test]
    fn it_says_what_is_wrong() {
        let waiter = |contents: &Contents| contents.waiters.iter().next().unwrap().0;
        says(&audited(|_, contents, at| drop(contents.remove(at, waiter(contents)))), "nobody waits, and its queue");
        says(&audited(|_, contents, at| drop(contents.queues.remove(&at))), "is in no queue");
        says(&audited(|_, contents, at| contents.queues.get_mut(&at).unwrap().spinning = Some(7)), "noted to spin");
        let ends = |engine: &Engine, contents: &mut Contents, _| {
            let agent = contents.waiters.iter().next().unwrap().1.agent;
            engine.agents.remove(agent);
        };
        says(&audited(ends), "which has ended");
    }

    /// A clock that forgets nothing.
    struct Deaf(Mutex<Deadline>);

    impl Timers for Deaf {
        fn deadline(&self, _: Deadline, _: Instant) -> io::Result<()> {
            Ok(())
        }
        fn cancel(&self, _: u64) {}
        fn lease(&self, _: usize, _: u64, _: Instant) {}
        fn kept(&self) -> Vec<Deadline> {
            vec![*self.0.lock()]
        }
    }

    #[test]
    fn it_says_which_deadline_is_left() {
        let mut engine = engine();
        let words: [AtomicU32; 2] = Default::default();
        // SAFETY: aligned atomics that outlive the engine's use of them.
        let place = unsafe { Place::new(NonNull::from(&words).cast(), 0) };
        let mut section = engine.open(&MUTEX, place).unwrap();
        let deadline = section.next_deadline(1);
        section.finish();
        engine.timers = Box::new(Deaf(Mutex::new(deadline)));
        says(&engine.audit(), "a deadline of waiter");
    }

    #[test]
    fn it_says_what_is_left() {
        let engine = engine();
        let agent = engine.agents.add(3).unwrap();
        assert_eq!(engine.left(), ["an agent of thread 3"]);
        engine.thread_ended(agent.id);
        assert_eq!(engine.left(), Vec::<String>::new());
    }
}
