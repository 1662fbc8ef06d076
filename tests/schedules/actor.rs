//! A thread that blocks, and what an event loop does like one.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sablock::agents::Agent;
use sablock::clients::LockSet;
use sablock::clients::condition::{ConditionFailure, ConditionLock};
use sablock::engine::{Caller, Change, Failure, Hold, HoldOwner, Hop, Limit, Outcome, Primitive, Request, Slot};
use sablock::memory::Place;
use sablock::primitives::event::AUTO_RESET_EVENT;
use sablock::primitives::mutex::MUTEX;
use sablock::primitives::rwlock::RWLOCK;
use sablock::sync::AtomicU32;
use shuttle::thread;

use super::meeting::meet_one;
use super::reached::{Reached, reached};
use super::world::{Act, Ask, MAIN, Mood, Thing, World};
use super::{below, dawdle, one_in, trace};

/// The thread's end has begun: its code goes no further.
#[derive(Debug)]
pub struct Ends;

/// One thread's side of the world: its agent, its slots, and what it holds.
pub struct Actor<'w> {
    pub world: &'w World,
    pub number: usize,
    pub agent: Arc<Agent>,
    /// For each thing, where its holds are counted if its words do not tell of them.
    slots: Vec<Option<Box<[AtomicU32; 2]>>>,
    pub held: Vec<(usize, Hold)>,
    /// It has yet to take something from the store.
    is_taker: bool,
    /// It has yet to pass the gate.
    is_passer: bool,
    /// It has yet to come to the meeting.
    is_comer: bool,
    /// The slot in which what it has at the meeting is counted.
    slot_of_meeting: Option<Box<[AtomicU32; 2]>>,
}

/// Looks whether the thread is being terminated.
pub struct Looks<'w>(&'w World, usize);

impl Caller for Looks<'_> {
    fn pause(&mut self) -> bool {
        dawdle(3);
        !self.0.is_terminated(self.1)
    }
}

/// Runs such a thread to its end.
pub fn run(world: &World, number: usize) {
    let mut actor = Actor::enter(world, number, world.engine.agents.add(number as u32).unwrap());
    for left in (0..=2 + below(4)).rev() {
        let acted = if actor.is_taker && (left <= 2 || one_in(3)) {
            actor.take_goods()
        } else if actor.is_passer && (left <= 1 || one_in(3)) {
            actor.pass_gate()
        } else if actor.is_comer && (left == 0 || one_in(3)) {
            actor.meet()
        } else {
            actor.act()
        };
        if acted.is_err() || world.is_terminated(number) {
            break;
        }
        world.meddle(&actor.agent);
    }
    actor.leave();
    world.engine.thread_ended(actor.agent.id);
}

/// Puts something into the store as long as somebody comes for it, once what was there is taken, and opens the gate as long as
/// somebody passes; on the main thread, which nobody ends. A notification that is lost lets it wait for ever.
pub fn deliver(world: &World) {
    let agent = world.engine.agents.add(MAIN as u32).unwrap();
    let (store, hold) = (&world.things[world.store()], Hold::exclusive(HoldOwner::Thread));
    let is_wanted = || world.takers.load(Ordering::Relaxed) > 0;
    let is_passed = || world.gate.passers.load(Ordering::Relaxed) > 0;
    while is_wanted() || is_passed() || world.meeting.wants_partner() {
        dawdle(40);
        meet_one(world, &agent);
        if is_passed() && !world.is_open() {
            world.gate.sets.fetch_add(1, Ordering::Relaxed);
            world.engine.change(&agent, &AUTO_RESET_EVENT, world.gate(), Change::Set).unwrap();
        }
        let is_there = world.goods.load(Ordering::Relaxed) > 0 && !store.room.is_spoiled();
        if !is_wanted() || is_there {
            thread::yield_now();
            continue;
        }
        let request = Request::Hold(hold);
        let got = world.engine.wait(&agent, store.primitive, store.place(), request, Limit::Endless, &mut || true);
        let Ok(Outcome::Granted { abandoned_by, .. }) = got else {
            assert!(store.room.is_spoiled(), "{got:?}");
            // An actor that waits for goods learns that there is no store any more.
            world.engine.notify(world.condition(), usize::MAX);
            continue;
        };
        store.room.enter(MAIN, hold, abandoned_by);
        world.goods.fetch_add(1, Ordering::Relaxed);
        reached(Reached::Notified, world.engine.notify(world.condition(), 1) as u64);
        store.room.leave(MAIN, hold);
        let released = world.engine.release(&agent, store.primitive, store.place(), hold);
        assert!(released == Ok(true) || store.room.is_spoiled(), "{released:?}");
    }
    world.engine.thread_ended(agent.id);
}

impl<'w> Actor<'w> {
    pub fn enter(world: &'w World, number: usize, agent: Arc<Agent>) -> Self {
        let slots = world.things.iter().map(|_| None).collect();
        let (is_taker, is_passer) = (world.takes[number], world.passes[number]);
        let is_comer = world.meeting.comes[number];
        let (held, slot_of_meeting) = (Vec::new(), None);
        let mut actor = Self { world, number, agent, slots, held, is_taker, is_passer, is_comer, slot_of_meeting };
        (0..world.things.len()).for_each(|index| actor.add_slot(index));
        if is_comer {
            actor.join();
        }
        actor
    }

    fn add_slot(&mut self, index: usize) {
        let thing = &self.world.things[index];
        if thing.primitive.about().registered.is_none() || self.slots[index].is_some() {
            return;
        }
        self.slots[index] = Some(self.new_slot(thing.primitive, thing.place()));
    }

    /// Memory in which its holds are counted; it is to be kept until the slot is freed, or the agent has ended.
    fn new_slot(&self, primitive: &'static dyn Primitive, place: Place) -> Box<[AtomicU32; 2]> {
        let memory = Box::new([0, 0].map(AtomicU32::new));
        // SAFETY: aligned and zero; it is freed once the slot is, or with this actor, which goes after its agent has ended.
        let slot = unsafe { Slot::new(self.agent.id, NonNull::from(&*memory)) };
        self.world.engine.add_slot(primitive, place, slot);
        memory
    }

    /// Its slot for what it has at the meeting.
    pub fn add_slot_of_meeting(&mut self) {
        let meeting = &self.world.meeting;
        if self.slot_of_meeting.is_none() {
            self.slot_of_meeting = Some(self.new_slot(meeting.primitive, meeting.place()));
        }
    }

    /// Gives up a slot, as JS does with those that were not used for long.
    fn free_slot(&mut self, index: usize) {
        let thing = &self.world.things[index];
        if self.slots[index].is_some() && self.world.engine.free_slot(thing.primitive, thing.place(), self.agent.id) {
            self.slots[index] = None;
            reached(Reached::SlotFreed, 1);
        }
    }

    /// Its thread ends: what it is inside is its no more.
    pub fn leave(&mut self) {
        trace(&self.agent, || format!("ends with {:?}", self.held));
        for (index, hold) in std::mem::take(&mut self.held) {
            self.world.things[index].room.end(self.number, hold);
        }
        self.takes_no_more();
        self.comes_no_more();
        if self.passes_no_more() {
            self.world.gate.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It has passed, or never will. Returns whether it was to.
    fn passes_no_more(&mut self) -> bool {
        let was_passer = std::mem::take(&mut self.is_passer);
        if was_passer {
            self.world.gate.passers.fetch_sub(1, Ordering::Relaxed);
        }
        was_passer
    }

    /// It has come to the meeting, or never will. Returns whether it was to.
    pub fn comes_no_more(&mut self) -> bool {
        let was_comer = std::mem::take(&mut self.is_comer);
        if was_comer {
            self.world.meeting.is_left();
        }
        was_comer
    }

    /// Its code has passed the gate.
    pub fn passed(&mut self) {
        trace(&self.agent, || "has passed".into());
        self.world.gate.passed.fetch_add(1, Ordering::Relaxed);
        reached(Reached::Passed, 1);
        self.passes_no_more();
    }

    /// It has taken something, or never will.
    pub fn takes_no_more(&mut self) {
        if std::mem::take(&mut self.is_taker) {
            self.world.takers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn caller(&self) -> Looks<'w> {
        Looks(self.world, self.number)
    }

    fn act(&mut self) -> Result<(), Ends> {
        let count = self.world.common_things().len();
        let acts = &self.world.mood.acts;
        match acts[below(acts.len())] {
            Act::One => self.hold(&[below(count)]),
            Act::Both => {
                let mut both: Vec<_> = (0..count).collect();
                if self.world.is_crosswise && one_in(2) {
                    both.reverse();
                }
                self.hold(&both)
            }
            Act::All => self.hold_all(),
            Act::FreeSlot => {
                self.free_slot(below(count));
                Ok(())
            }
        }
    }

    /// Whether its thread ends here.
    pub fn ends(&self) -> bool {
        self.world.is_terminated(self.number) || one_in(self.world.mood.ends)
    }

    /// Holds one inside the other.
    fn hold(&mut self, indices: &[usize]) -> Result<(), Ends> {
        let [index, rest @ ..] = indices else { return Ok(()) };
        let hold = self.world.things[*index].random_hold();
        if !self.acquire(*index, hold, self.world.random_limit())? {
            return Ok(());
        }
        dawdle(6);
        let hold = if one_in(3) { self.change(*index, hold) } else { hold };
        self.hold(rest)?;
        if self.ends() {
            return Err(Ends);
        }
        self.release(*index, hold);
        Ok(())
    }

    /// Blocks for a thing; true if it has it.
    pub fn acquire(&mut self, index: usize, hold: Hold, limit: Limit) -> Result<bool, Ends> {
        trace(&self.agent, || format!("blocks for {index}: {hold:?}, {limit:?}"));
        self.add_slot(index);
        let (world, thing) = (self.world, &self.world.things[index]);
        if thing.try_enter(hold, self.agent.id) {
            self.count(index, hold);
            self.got(index, hold, Outcome::GRANTED);
            return Ok(true);
        }
        let request = Request::Hold(hold);
        let outcome =
            world.engine.wait(&self.agent, thing.primitive, thing.place(), request, limit, &mut self.caller());
        match outcome {
            Ok(outcome @ Outcome::Granted { .. }) => {
                self.got(index, hold, outcome);
                Ok(true)
            }
            Ok(Outcome::TimedOut) => {
                assert!(limit != Limit::Endless, "a wait without end is over");
                reached(Reached::TimedOut, u64::from(limit != Limit::Once));
                Ok(false)
            }
            Ok(other) => panic!("{other:?}"),
            Err(failure) => self.failed(failure, thing.room.is_spoiled()).map(|()| false),
        }
    }

    /// A wait has failed, and is allowed to.
    pub fn failed(&self, failure: Failure, is_spoiled: bool) -> Result<(), Ends> {
        trace(&self.agent, || format!("fails: {failure:?}"));
        match failure {
            Failure::Deadlock(cycle) => {
                // A thread may also block behind what its own loop waits for; and registers do not know that words were overwritten.
                let is_own = cycle.len() == 1 && self.world.actors[self.number];
                assert!(
                    self.world.is_crosswise || is_own || self.world.is_any_spoiled(),
                    "what is wanted in one order: {cycle:?}"
                );
                // Unless somebody's end is begun from outside, all of the cycle still are where they were; in a set, no code is
                // inside.
                let Mood { acts, asks, .. } = &self.world.mood;
                let has_sets =
                    acts.iter().any(|act| matches!(act, Act::All)) || asks.iter().any(|ask| matches!(ask, Ask::All));
                if !self.world.has_slices && !is_own && !has_sets {
                    self.expect_cycle(&cycle);
                }
                reached(Reached::Deadlock, 1);
                Ok(())
            }
            Failure::Interrupted => {
                assert!(self.world.is_terminated(self.number));
                reached(Reached::Interrupted, 1);
                Err(Ends)
            }
            Failure::Corrupt => {
                assert!(is_spoiled, "nobody has overwritten it");
                reached(Reached::CorruptBlocked, 1);
                Ok(())
            }
        }
    }

    /// The next of them keeps from each what it waits for: it is inside, or stands ahead in the same line.
    fn expect_cycle(&self, cycle: &[Hop]) {
        for (index, hop) in cycle.iter().enumerate() {
            let next = cycle[(index + 1) % cycle.len()];
            let thing = self.world.things.iter().find(|thing| thing.place().byte_offset == hop.byte_offset);
            let is_inside = thing.is_some_and(|thing| thing.room.has(next.thread as usize));
            assert!(is_inside || next.byte_offset == hop.byte_offset, "{next:?} keeps nothing from {hop:?}: {cycle:?}");
        }
    }

    /// Counts what a fast path has taken in its slot, as JS does.
    fn count(&self, index: usize, hold: Hold) {
        if !self.world.things[index].primitive.is_registered(hold) {
            return;
        }
        let [raw, guarded] = &**self.slots[index].as_ref().expect("a slot for whatever is taken");
        let count = if hold.owner() == HoldOwner::Thread { raw } else { guarded };
        count.store(count.load(Ordering::Relaxed) + hold.count(), Ordering::Relaxed);
    }

    /// Its code is inside.
    pub fn got(&mut self, index: usize, hold: Hold, outcome: Outcome) {
        trace(&self.agent, || format!("is in {index}: {outcome:?}"));
        let Outcome::Granted { abandoned_by, .. } = outcome else { panic!("{outcome:?}") };
        let thing = &self.world.things[index];
        thing.room.enter(self.number, hold, abandoned_by);
        self.held.push((index, hold));
        if abandoned_by.is_some() && hold.is_exclusive() {
            assert!(thing.is_marked() || thing.room.is_spoiled(), "an end without a mark");
            if one_in(2) {
                let (primitive, place) = (thing.primitive, thing.place());
                let marked = self.world.engine.change(&self.agent, primitive, place, Change::MarkConsistent);
                assert!(matches!(marked, Ok(Some(_))) || thing.room.is_spoiled(), "{marked:?}");
            }
        }
    }

    /// Holds a readers-writer lock in the other way from now on, if that can be; returns how.
    fn change(&mut self, index: usize, hold: Hold) -> Hold {
        let thing = &self.world.things[index];
        if !thing.primitive.is(&RWLOCK) {
            return hold;
        }
        let change = |change| self.world.engine.change(&self.agent, &RWLOCK, thing.place(), change);
        let other = if hold.is_shared() {
            let other = Hold::exclusive(hold.owner());
            let Ok(Some(_)) = change(Change::Upgrade(hold.owner())) else { return hold };
            thing.room.exchange(hold, other);
            other
        } else {
            let other = Hold::shared(hold.owner());
            // Before others can come in beside it.
            thing.room.exchange(hold, other);
            let changed = change(Change::Downgrade(hold.owner()));
            assert!(matches!(changed, Ok(Some(_))) || thing.room.is_spoiled(), "{changed:?}");
            other
        };
        reached(Reached::Changed, 1);
        *self.held.iter_mut().find(|held| **held == (index, hold)).expect("it is held") = (index, other);
        other
    }

    pub fn release(&mut self, index: usize, hold: Hold) {
        trace(&self.agent, || format!("releases {index}"));
        let thing = self.forget(index, hold);
        if !thing.try_release(hold, self.agent.id) {
            let released = self.world.engine.release(&self.agent, thing.primitive, thing.place(), hold);
            assert!(released == Ok(true) || thing.room.is_spoiled(), "{released:?}");
        }
    }

    /// Its code is inside no more.
    pub fn forget(&mut self, index: usize, hold: Hold) -> &'w Thing {
        let at = self.held.iter().position(|held| *held == (index, hold)).expect("it is held");
        self.held.swap_remove(at);
        let thing = &self.world.things[index];
        thing.room.leave(self.number, hold);
        thing
    }

    /// One way to hold each of the common things, and the set of these.
    pub fn random_set(&mut self) -> (Vec<Hold>, LockSet) {
        let things = self.world.common_things();
        (0..things.len()).for_each(|index| self.add_slot(index));
        let holds: Vec<_> = things.iter().map(Thing::random_hold).collect();
        let wanted = things.iter().zip(&holds).map(|(thing, hold)| (thing.primitive, thing.place(), *hold));
        let set = LockSet::new(wanted);
        (holds, set)
    }

    /// Its code has a set.
    pub fn got_all(&mut self, holds: &[Hold], set: &LockSet) {
        reached(Reached::SetLocked, 1);
        for (index, hold) in holds.iter().enumerate() {
            let report = set.reports().find(|(part, _)| *part == index).map(|(_, agent)| agent);
            self.got(index, *hold, Outcome::granted(report));
        }
    }

    /// All things at once, by blocking.
    fn hold_all(&mut self) -> Result<(), Ends> {
        let world = self.world;
        let (holds, mut set) = self.random_set();
        trace(&self.agent, || format!("blocks for all: {holds:?}"));
        match set.lock(&world.engine, &self.agent, world.random_limit(), &mut self.caller()) {
            Ok(Outcome::Granted { .. }) => {}
            Ok(_) => return Ok(()),
            Err(failure) => return self.failed(failure, world.is_any_spoiled()),
        }
        self.got_all(&holds, &set);
        dawdle(6);
        if self.ends() {
            return Err(Ends);
        }
        holds.iter().enumerate().for_each(|(index, hold)| self.release(index, *hold));
        Ok(())
    }

    /// Waits until it can pass the gate.
    fn pass_gate(&mut self) -> Result<(), Ends> {
        trace(&self.agent, || "blocks at the gate".into());
        let (gate, request) = (self.world.gate(), Request::Hold(Hold::PASSAGE));
        let caller = &mut self.caller();
        match self.world.engine.wait(&self.agent, &AUTO_RESET_EVENT, gate, request, Limit::Endless, caller) {
            Ok(Outcome::Granted { .. }) => {
                self.passed();
                Ok(())
            }
            Ok(other) => panic!("{other:?}"),
            Err(failure) => self.failed(failure, false),
        }
    }

    /// Takes something from the store, and waits for it if there is nothing.
    fn take_goods(&mut self) -> Result<(), Ends> {
        let (world, index, hold) = (self.world, self.world.store(), Hold::exclusive(HoldOwner::Thread));
        if !self.acquire(index, hold, Limit::Endless)? {
            self.takes_no_more();
            return Ok(());
        }
        while !self.try_take_goods() {
            trace(&self.agent, || "waits for goods".into());
            self.forget(index, hold);
            let lock = ConditionLock { primitive: &MUTEX, place: world.things[index].place(), hold };
            let (condition, limit) = (world.condition(), Limit::Endless);
            let waited = lock.wait(&world.engine, &self.agent, condition, limit, &mut self.caller());
            match waited {
                Ok((is_notified, outcome)) => {
                    assert!(is_notified, "it waits without end");
                    self.got(index, hold, outcome);
                }
                Err(ConditionFailure::NotLocked(failure)) => {
                    self.takes_no_more();
                    return self.failed(failure, world.things[index].room.is_spoiled());
                }
                Err(ConditionFailure::NotHeld | ConditionFailure::Corrupt) => {
                    assert!(world.things[index].room.is_spoiled(), "it was held");
                    self.takes_no_more();
                    return Ok(());
                }
            }
        }
        if self.ends() {
            return Err(Ends);
        }
        self.release(index, hold);
        Ok(())
    }

    /// Takes something if there is something, with the store locked.
    pub fn try_take_goods(&mut self) -> bool {
        let goods = self.world.goods.load(Ordering::Relaxed);
        let Some(rest) = goods.checked_sub(1) else { return false };
        self.world.goods.store(rest, Ordering::Relaxed);
        self.takes_no_more();
        true
    }
}
