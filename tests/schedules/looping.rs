//! A thread with an event loop: it awaits several things at once, holds them across turns, takes waits back, and blocks now and
//! then.

use std::time::Duration;

use sablock::clients::condition::ConditionLock;
use sablock::clients::{ClientLoop, Clients};
use sablock::engine::{Hold, HoldOwner, Limit, Mode, Order, Outcome, Reply, ReplyError, Request, Settled};
use sablock::primitives::event::AUTO_RESET_EVENT;
use sablock::primitives::mutex::MUTEX;
use sablock::sync;

use super::actor::{Actor, Ends};
use super::meeting::Visit;
use super::reached::{Reached, reached};
use super::world::{Ask, World};
use super::{below, common, dawdle, one_in, trace};

/// Longer than any wait that has an end.
const FOR_EVER: Duration = Duration::from_secs(3600);
/// The hold of the store's mutex.
const ALONE: Hold = Hold::exclusive(HoldOwner::Thread);

/// The hold of a name, as the room counts it.
fn by_name(mode: Mode) -> Hold {
    Hold::Lock { mode, owner: HoldOwner::Guard }
}

/// A wait that is pending.
struct Pending {
    token: u32,
    limit: Limit,
    of: Of,
}

/// The purpose.
pub enum Of {
    Thing(usize, Hold),
    /// The request's number, the name, how.
    Name(u32, usize, Mode),
    /// A hold outside.
    Outside(Hold),
    Set(Vec<Hold>),
    /// The store's mutex; with the token of the notification that it waits for it with, if there was one.
    Store(Option<u32>),
    Notification,
    Gate,
    Meeting(Visit),
}

/// A thread with an event loop.
pub struct Looping {
    pub actor: Actor<'static>,
    pub waits: ClientLoop<'static>,
    pending: Vec<Pending>,
    names: Vec<(u32, usize, Mode)>,
    /// Its holds outside, by the numbers of their requests.
    pub outside: Vec<(u64, Hold)>,
    /// It is to run what is done once.
    runs: bool,
}

/// Runs such a thread to its end.
pub fn run(world: &'static World, number: usize) {
    let (waits, parked) = common::event_loop_with(world.engine, number as u32, Clients::new(&world.names));
    let actor = Actor::enter(world, number, waits.agent().clone());
    let (pending, names, outside) = (Vec::new(), Vec::new(), Vec::new());
    let mut thread = Looping { actor, waits, pending, names, outside, runs: false };
    let [mut takes, mut passes, mut comes] = [&world.takes, &world.passes, &world.meeting.comes].map(|all| all[number]);
    let mut left = 1 + below(4);
    loop {
        thread.waits.turned();
        let mut is_idle = true;
        while let Some(settled) = thread.waits.next_settled() {
            is_idle = false;
            if one_in(20) {
                reached(Reached::EndedBeforeItKnew, 1);
                return thread.end();
            }
            thread.settled(settled);
        }
        thread.learn_of_losses();
        if thread.run_once().is_err() {
            return thread.end();
        }
        if world.is_terminated(number) || one_in(world.mood.ends) {
            return thread.end();
        }
        if one_in(12) {
            dawdle(300);
        }
        if takes && (left == 0 || one_in(3)) {
            (takes, is_idle) = (false, false);
            thread.lock_store(None);
        } else if passes && (left == 0 || one_in(3)) {
            (passes, is_idle) = (false, false);
            thread.ask_to_pass();
        } else if comes && !thread.holds() && (left == 0 || one_in(3)) {
            (comes, is_idle) = (false, false);
            if thread.come().is_err() {
                return thread.end();
            }
        } else if left > 0 && one_in(2) {
            (left, is_idle) = (left - 1, false);
            thread.ask();
        } else if thread.holds() {
            is_idle = false;
            dawdle(6);
            thread.release_one();
        } else if !thread.pending.is_empty() && one_in(8) {
            is_idle = false;
            thread.take_back();
        } else if one_in(5) {
            is_idle = false;
            if thread.block().is_err() {
                return thread.end();
            }
        }
        let is_over = left == 0 && !takes && !passes && !comes && !thread.holds();
        if is_over && thread.pending.iter().all(|wait| wait.is_hopeless(world)) {
            return thread.end();
        }
        if is_idle && is_over {
            // Words that were overwritten need not be told to it.
            let longest = if world.has_slices { Duration::from_millis(50) } else { FOR_EVER };
            parked.park_until(sync::now() + longest);
        }
    }
}

impl Pending {
    /// Whether nobody need ever wake the loop for it.
    fn is_hopeless(&self, world: &World) -> bool {
        match &self.of {
            Of::Thing(index, _) => world.things[*index].room.is_spoiled(),
            Of::Set(_) => world.is_any_spoiled(),
            Of::Store(_) => world.things[world.store()].room.is_spoiled(),
            Of::Name(..) | Of::Outside(_) | Of::Notification | Of::Gate | Of::Meeting(_) => false,
        }
    }
}

impl Looping {
    fn end(mut self) {
        reached(Reached::EndedWhilePending, u64::from(!self.pending.is_empty()));
        for (_, name, mode) in &self.names {
            self.actor.world.named[*name].end(self.actor.number, by_name(*mode));
        }
        for (_, hold) in &self.outside {
            self.actor.world.outside.room.end(self.actor.number, *hold);
        }
        if self.runs {
            self.actor.world.meeting.ended_inside();
        }
        self.actor.leave();
        self.waits.end();
    }

    fn holds(&self) -> bool {
        !self.actor.held.is_empty() || !self.names.is_empty() || !self.outside.is_empty()
    }

    pub fn pends(&mut self, token: u32, limit: Limit, of: Of) {
        self.pending.push(Pending { token, limit, of });
    }

    /// Asks for something.
    fn ask(&mut self) {
        let asks = &self.actor.world.mood.asks;
        match asks[below(asks.len())] {
            Ask::Name => self.ask_for_a_name(),
            Ask::Outside => self.ask_outside(),
            Ask::All => self.ask_for_all(),
            Ask::Thing => self.ask_for_a_thing(),
        }
    }

    pub fn random_limit(&self) -> Limit {
        let world = self.actor.world;
        // These are no part of a deadlock, though nobody takes them back, and their time never comes.
        match below(8) {
            0 if !world.is_crosswise => Limit::Revocable,
            1 if !world.is_crosswise => Limit::after(FOR_EVER),
            _ => world.random_limit(),
        }
    }

    fn ask_for_a_thing(&mut self) {
        let index = below(self.actor.world.common_things().len());
        let thing = &self.actor.world.things[index];
        let (hold, limit) = (thing.random_hold(), self.random_limit());
        trace(&self.actor.agent, || format!("awaits {index}: {hold:?}, {limit:?}"));
        match self.waits.wait(thing.primitive, thing.place(), Request::Hold(hold), limit) {
            Ok(Reply::Pending { token, .. }) => self.pends(token, limit, Of::Thing(index, hold)),
            Ok(Reply::Now(Outcome::TimedOut)) => assert_eq!(limit, Limit::Once),
            Ok(Reply::Now(outcome)) => self.actor.got(index, hold, outcome),
            Err(error) => expect_refusal(&error, limit, thing.room.is_spoiled()),
        }
    }

    fn ask_for_a_name(&mut self) {
        let (name, limit) = (below(self.actor.world.named.len()), self.random_limit());
        let mode = if one_in(2) { Mode::Exclusive } else { Mode::Shared };
        trace(&self.actor.agent, || format!("awaits name {name}: {mode:?}, {limit:?}"));
        match self.waits.request_name(self.actor.world.name(name), mode, false, limit) {
            Ok((request, Reply::Pending { token, .. })) => {
                self.pends(token, limit, Of::Name(request.number, name, mode));
            }
            Ok((_, Reply::Now(Outcome::TimedOut))) => assert_eq!(limit, Limit::Once),
            Ok((request, Reply::Now(outcome))) => self.got_name(request.number, name, mode, outcome),
            Err(error) => expect_refusal(&error, limit, false),
        }
    }

    fn ask_for_all(&mut self) {
        // Loops that wait for each other crosswise are not reported by the engine.
        let is_crosswise = self.actor.world.is_crosswise;
        let limit = if is_crosswise { Limit::after(Duration::from_millis(2)) } else { self.random_limit() };
        let (holds, mut set) = self.actor.random_set();
        trace(&self.actor.agent, || format!("awaits all: {holds:?}, {limit:?}"));
        let reply = self.waits.lock_all(&mut set, limit);
        match reply {
            Ok(Reply::Pending { token, .. }) => self.pends(token, limit, Of::Set(holds)),
            Ok(Reply::Now(Outcome::TimedOut)) => assert_eq!(limit, Limit::Once),
            Ok(Reply::Now(_)) => self.actor.got_all(&holds, &set),
            Err(error) => expect_refusal(&error, limit, self.actor.world.is_any_spoiled()),
        }
    }

    fn ask_to_pass(&mut self) {
        let (gate, request) = (self.actor.world.gate(), Request::Hold(Hold::PASSAGE));
        trace(&self.actor.agent, || "awaits the gate".into());
        match self.waits.wait(&AUTO_RESET_EVENT, gate, request, Limit::Endless) {
            Ok(Reply::Pending { token, .. }) => self.pends(token, Limit::Endless, Of::Gate),
            Ok(Reply::Now(Outcome::Granted { .. })) => self.actor.passed(),
            other => panic!("{other:?}"),
        }
    }

    fn got_name(&mut self, number: u32, name: usize, mode: Mode, outcome: Outcome) {
        trace(&self.actor.agent, || format!("has name {name}: {outcome:?}"));
        let Outcome::Granted { abandoned_by, .. } = outcome else { panic!("{outcome:?}") };
        self.actor.world.named[name].enter(self.actor.number, by_name(mode), abandoned_by);
        self.names.push((number, name, mode));
        reached(Reached::NameHeld, 1);
    }

    /// A wait is over.
    fn settled(&mut self, settled: Settled) {
        trace(&self.actor.agent, || format!("{settled:?}"));
        let at = self.pending.iter().position(|wait| wait.token == settled.token).expect("a wait that was pending");
        let Pending { token, limit, of } = self.pending.swap_remove(at);
        match (settled.outcome, of) {
            (Ok(outcome), Of::Meeting(visit)) => self.has_come(visit, outcome),
            (Ok(Outcome::Granted { .. } | Outcome::Refused { .. }), Of::Outside(hold)) => {
                let told = self.waits.take_told().expect("an answer to a wait that was settled");
                self.answered(told, hold);
            }
            (Ok(Outcome::TimedOut), _) => {
                assert!(matches!(limit, Limit::Until(_)), "a wait without end is over");
                reached(Reached::ExpiredByTheClock, 1);
            }
            (Err(_), Of::Thing(index, _)) => {
                assert!(self.actor.world.things[index].room.is_spoiled(), "nobody has overwritten it");
                reached(Reached::CorruptPending, 1);
            }
            (Err(_), Of::Store(notification)) => self.leave_store(notification),
            (Err(_), of) => {
                assert!(matches!(of, Of::Set(_)) && self.actor.world.is_any_spoiled(), "nobody has overwritten it")
            }
            (Ok(outcome), Of::Thing(index, hold)) => self.actor.got(index, hold, outcome),
            (Ok(outcome), Of::Name(number, name, mode)) => self.got_name(number, name, mode, outcome),
            (Ok(_), Of::Set(holds)) => self.go_on(holds, limit),
            (Ok(outcome), Of::Store(notification)) => self.in_store(notification, outcome),
            (Ok(_), Of::Notification) => self.lock_store(Some(token)),
            (Ok(_), Of::Gate) => self.actor.passed(),
        }
    }

    /// Comes to the meeting.
    fn come(&mut self) -> Result<(), Ends> {
        if self.actor.only_closes()? {
            return Ok(());
        }
        let meeting = &self.actor.world.meeting;
        let ((visit, request), limit) = (meeting.visit(), meeting.random_limit());
        trace(&self.actor.agent, || format!("awaits {visit:?}, {limit:?}"));
        match self.waits.wait(meeting.primitive, meeting.place(), request, limit) {
            Ok(Reply::Pending { token, .. }) => self.pends(token, limit, Of::Meeting(visit)),
            Ok(Reply::Now(outcome)) => self.has_come(visit, outcome),
            Err(error) => expect_refusal(&error, limit, false),
        }
        self.run_once()
    }

    fn has_come(&mut self, visit: Visit, outcome: Outcome) {
        self.runs = self.actor.world.meeting.over(&self.actor.agent, visit, outcome);
        self.actor.has_met();
    }

    /// Runs what is done once, if that is its turn; once the loop has learned of all that is settled, as code behind a promise does.
    fn run_once(&mut self) -> Result<(), Ends> {
        if std::mem::take(&mut self.runs) { self.actor.run_once() } else { Ok(()) }
    }

    /// The set has one lock more.
    fn go_on(&mut self, holds: Vec<Hold>, limit: Limit) {
        match self.waits.go_on().expect("the set that was settled") {
            Ok(Reply::Pending { token, .. }) => self.pends(token, limit, Of::Set(holds)),
            Ok(Reply::Now(Outcome::Granted { .. })) => {
                let reports = self.waits.look_at_set(None, |set| set.reports().collect::<Vec<_>>()).unwrap();
                let (_, wanted) = self.actor.random_set();
                self.actor.got_all(&holds, &wanted.all_held(&reports));
            }
            Ok(Reply::Now(_)) => assert!(limit != Limit::Endless, "a wait without end is over"),
            Err(error) => expect_refusal(&error, limit, self.actor.world.is_any_spoiled()),
        }
    }

    /// Locks the store, after a notification or for the first time.
    fn lock_store(&mut self, notification: Option<u32>) {
        let place = self.actor.world.things[self.actor.world.store()].place();
        match self.waits.wait(&MUTEX, place, Request::Hold(ALONE), Limit::Endless) {
            Ok(Reply::Pending { token, .. }) => self.pends(token, Limit::Endless, Of::Store(notification)),
            Ok(Reply::Now(outcome)) => self.in_store(notification, outcome),
            Err(_) => self.leave_store(notification),
        }
    }

    /// Its words were overwritten.
    fn leave_store(&mut self, notification: Option<u32>) {
        assert!(self.actor.world.things[self.actor.world.store()].room.is_spoiled(), "nobody has overwritten it");
        if let Some(token) = notification {
            self.waits.drop_wait(token);
        }
        self.actor.takes_no_more();
    }

    /// Takes something from the store, or waits for it.
    fn in_store(&mut self, notification: Option<u32>, outcome: Outcome) {
        let (world, store) = (self.actor.world, self.actor.world.store());
        self.actor.got(store, ALONE, outcome);
        if let Some(token) = notification {
            self.waits.accept(token);
        }
        if self.actor.try_take_goods() {
            return self.actor.release(store, ALONE);
        }
        trace(&self.actor.agent, || "awaits goods".into());
        let place = self.actor.forget(store, ALONE).place();
        let lock = ConditionLock { primitive: &MUTEX, place, hold: ALONE };
        let reply = lock.wait_async(&mut self.waits, world.condition(), Limit::Endless);
        match reply {
            Ok(Reply::Pending { token, .. }) => self.pends(token, Limit::Endless, Of::Notification),
            _ => self.leave_store(None),
        }
    }

    fn release_one(&mut self) {
        if let Some((number, name, mode)) = self.names.pop() {
            trace(&self.actor.agent, || format!("releases name {name}"));
            self.actor.world.named[name].leave(self.actor.number, by_name(mode));
            assert_eq!(self.waits.release_name(number), Ok(true));
            return;
        }
        if !self.outside.is_empty() {
            return self.release_outside();
        }
        let (index, hold) = self.actor.held[below(self.actor.held.len())];
        self.actor.release(index, hold);
    }

    /// Takes a wait back, unless it is over: then the loop learns of it in its next turn.
    fn take_back(&mut self) {
        let at = below(self.pending.len());
        if matches!(self.pending[at].of, Of::Store(_) | Of::Notification | Of::Gate) {
            return;
        }
        trace(&self.actor.agent, || format!("takes back wait {}", self.pending[at].token));
        if self.waits.cancel(self.pending[at].token).is_some() {
            let wait = self.pending.swap_remove(at);
            if let Of::Meeting(visit) = wait.of {
                self.actor.world.meeting.taken_back(visit);
                self.actor.has_met();
            }
            reached(Reached::TakenBack, 1);
        }
    }

    /// Blocks the thread, which holds nothing then.
    fn block(&mut self) -> Result<(), Ends> {
        let world = self.actor.world;
        let index = below(world.common_things().len());
        let hold = world.things[index].random_hold();
        // A grant in strict order stays its own until the loop comes, and what a set has until it has all: nobody sees
        // that as a deadlock. Unless the clock ends it.
        let keeps = |wait: &Pending| match &wait.of {
            Of::Thing(index, _) => world.things[*index].primitive.order() == Order::Strict,
            Of::Set(_) | Of::Name(..) | Of::Outside(_) => true,
            Of::Store(_) | Of::Notification | Of::Gate => false,
            Of::Meeting(_) => true,
        };
        let is_soon = |limit| matches!(limit, Limit::Until(at) if at < sync::now() + FOR_EVER / 2);
        let keeps = self.pending.iter().any(|wait| !is_soon(wait.limit) && keeps(wait));
        let limit = if keeps { Limit::after(Duration::from_millis(1)) } else { Limit::Endless };
        if world.mood.asks.iter().any(|ask| matches!(ask, Ask::Outside)) && one_in(2) {
            return self.block_outside(limit);
        }
        if self.actor.acquire(index, hold, limit)? {
            dawdle(6);
            self.actor.release(index, hold);
        }
        Ok(())
    }
}

/// A request is refused, and is allowed to be.
pub fn expect_refusal(error: &ReplyError, limit: Limit, is_spoiled: bool) {
    match error {
        ReplyError::Corrupt => assert!(is_spoiled, "nobody has overwritten it"),
        ReplyError::NoClock(_) => assert!(matches!(limit, Limit::Until(_))),
        ReplyError::NotHeld => panic!("{error:?}"),
    }
}
