//! A store outside of the process, which grants one lock in the order in which it is asked for. It knows who may be inside.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sablock::clients::{ClientLoop, Held, InStore, StoreHold, Told};
use sablock::desk::{Answer, Desk, Lease, Loss, Question, Task};
use sablock::engine::{Hold, HoldOwner, Limit, Outcome, Reply};
use shuttle::thread;

use super::actor::Ends;
use super::looping::{Looping, Of, expect_refusal};
use super::reached::{Reached, reached};
use super::room::Room;
use super::{dawdle, one_in, trace};

/// The store, as its clients see it.
pub struct Outside {
    pub desk: Arc<Desk>,
    pub room: Room,
    /// A holder has ended inside, which none after it has learned.
    pub is_marked: AtomicBool,
    is_over: AtomicBool,
    /// It loses locks, and its lock worker may end.
    is_fickle: bool,
}

/// A grant.
struct Granted {
    number: u64,
    is_shared: bool,
    lease: Arc<Lease>,
}

/// The store's side.
#[derive(Default)]
struct Store {
    holders: Vec<Granted>,
    line: VecDeque<(u64, Question)>,
}

impl Outside {
    pub fn random() -> Self {
        let (desk, room, is_fickle) = (Arc::default(), Room::new("store outside"), one_in(4));
        if is_fickle {
            // An actor that has lost it is inside until it learns of that.
            room.spoil();
        }
        Self { desk, room, is_marked: AtomicBool::new(false), is_over: AtomicBool::new(false), is_fickle }
    }

    fn ask(&self, hold: Hold, is_try: bool) -> (InStore, Question) {
        let is_shared = hold == Hold::shared(hold.owner());
        let (name, payload) = (vec![97], String::new());
        let question = Question { store: 0, verb: 0, name, is_shared, flags: u32::from(is_try), payload, thread: 0 };
        (InStore::at(&self.desk, &question, false), question)
    }

    /// All who ask have ended.
    pub fn end(&self, server: &thread::Thread) {
        self.is_over.store(true, Ordering::SeqCst);
        server.unpark();
    }

    /// The lock worker, until the end, or its own.
    pub fn serve(&self) {
        let here = thread::current();
        self.desk.serve(Box::new(move || here.unpark()));
        let mut store = Store::default();
        loop {
            // First this: what was asked for before is seen to.
            let is_over = self.is_over.load(Ordering::SeqCst);
            store.turn(self);
            if is_over {
                break;
            }
            if self.is_fickle && one_in(30) {
                self.desk.end("it has ended");
                return;
            }
            thread::park();
        }
        let Store { holders, line } = store;
        assert!(holders.is_empty() && line.is_empty(), "{} hold, {} wait", holders.len(), line.len());
        self.room.expect_all_reported(self.is_marked.load(Ordering::SeqCst));
        assert_eq!(self.desk.left(), Vec::<String>::new());
    }
}

impl Store {
    fn turn(&mut self, outside: &Outside) {
        while let Some(task) = outside.desk.next() {
            match task {
                Task::Ask(number, question) if question.flags == 1 && !self.is_free_for(&question) => {
                    let is_failed = one_in(2);
                    let answer = if is_failed { Answer::Failed(String::new()) } else { Answer::Refused };
                    outside.desk.answer(number, answer);
                }
                Task::Ask(number, question) => self.line.push_back((number, question)),
                Task::Cancel(number) => self.line.retain(|(other, _)| *other != number),
                Task::Release(number, has_ended) => self.release(outside, number, has_ended),
            }
            dawdle(3);
            self.grant(outside);
        }
        if outside.is_fickle && one_in(8) && !self.holders.is_empty() {
            let lost = self.holders.remove(0);
            outside.desk.end_lease(&lost.lease, Loss::Taken);
            self.grant(outside);
        }
    }

    fn is_free_for(&self, question: &Question) -> bool {
        self.line.is_empty() && (self.holders.is_empty() || question.is_shared && self.holders[0].is_shared)
    }

    fn release(&mut self, outside: &Outside, number: u64, has_ended: bool) {
        let Some(at) = self.holders.iter().position(|holder| holder.number == number) else {
            assert!(outside.is_fickle, "released by who does not hold it");
            return;
        };
        let Granted { is_shared, .. } = self.holders.remove(at);
        assert!(!(has_ended && is_shared), "a mark of who shared it");
        if has_ended {
            outside.is_marked.store(true, Ordering::SeqCst);
        }
    }

    fn grant(&mut self, outside: &Outside) {
        while let Some((number, question)) = self.line.pop_front() {
            let is_shared = question.is_shared;
            if self.holders.first().is_some_and(|holder| !(is_shared && holder.is_shared)) {
                self.line.push_front((number, question));
                return;
            }
            let (lease, text) = (Lease::endless(), String::new());
            let granted = Answer::Granted { fence: 0, lease: Arc::clone(&lease), is_abandoned: false, text };
            if outside.desk.answer(number, granted) {
                self.holders.push(Granted { number, is_shared, lease });
                reached(Reached::OuterGranted, 1);
            } else {
                reached(Reached::OuterUnwanted, 1);
            }
        }
    }
}

/// A loop asks.
impl Looping {
    pub fn ask_outside(&mut self) {
        let (outside, hold, limit) = (&self.actor.world.outside, random_hold(), self.random_limit());
        trace(&self.actor.agent, || format!("awaits outside: {hold:?}, {limit:?}"));
        let (store, question) = outside.ask(hold, one_in(4));
        match self.waits.ask_outside(store, question, limit, None) {
            Ok((Reply::Pending { token, .. }, _)) => self.pends(token, limit, Of::Outside(hold)),
            Ok((Reply::Now(outcome), _)) => assert_eq!((outcome, limit), (Outcome::TimedOut, Limit::Once)),
            Err(error) => expect_refusal(&error, limit, false),
        }
    }

    /// Blocks for it.
    pub fn block_outside(&mut self, limit: Limit) -> Result<(), Ends> {
        let (world, hold) = (self.actor.world, random_hold());
        trace(&self.actor.agent, || format!("blocks outside: {hold:?}, {limit:?}"));
        let (store, question) = world.outside.ask(hold, one_in(4));
        let (agent, caller) = (&self.actor.agent, &mut self.actor.caller());
        match ClientLoop::ask_outside_blocking(world.engine, agent, store, question, limit, caller) {
            Ok(None) => assert!(limit != Limit::Endless, "a wait without end is over"),
            Ok(Some(answered)) => {
                let told = self.waits.take_in(answered);
                self.answered(told, hold);
                reached(Reached::OuterHeldByBlocking, self.outside.len() as u64);
            }
            Err(failure) => return self.actor.failed(failure, false),
        }
        dawdle(6);
        if self.actor.ends() {
            return Err(Ends);
        }
        self.release_outside();
        Ok(())
    }

    pub fn answered(&mut self, (number, told): (u64, Told), hold: Hold) {
        let Told::Store(answer) = told else { panic!("of a file") };
        trace(&self.actor.agent, || format!("outside: {answer:?}"));
        let outside = &self.actor.world.outside;
        if !matches!(answer, Answer::Granted { .. }) {
            return reached(Reached::OuterFailed, 1);
        }
        let is_reported = hold.is_exclusive() && outside.is_marked.swap(false, Ordering::SeqCst);
        outside.room.enter(self.actor.number, hold, is_reported.then_some(1));
        self.outside.push((number, hold));
        reached(Reached::OuterHeld, 1);
    }

    pub fn learn_of_losses(&mut self) {
        while let Some(number) = self.waits.next_lost() {
            assert!(store_hold(self.waits.held(number)).lost().is_some(), "it was told of a loss");
            reached(Reached::OuterLost, 1);
        }
    }

    pub fn release_outside(&mut self) {
        let Some((number, hold)) = self.outside.pop() else { return };
        trace(&self.actor.agent, || format!("releases outside {number}"));
        self.actor.world.outside.room.leave(self.actor.number, hold);
        let lost = store_hold(self.waits.remove_held(number).as_mut()).release(false);
        assert!(lost.is_none() || self.actor.world.outside.room.is_spoiled(), "{lost:?}");
    }
}

fn store_hold(held: Option<&mut Held>) -> &mut StoreHold {
    let Some(Held::Store(hold)) = held else { panic!("no hold of a store") };
    hold
}

fn random_hold() -> Hold {
    if one_in(2) { Hold::shared(HoldOwner::Guard) } else { Hold::exclusive(HoldOwner::Guard) }
}
