//! The actors inside of what is locked, as those know who are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use sablock::agents::AgentId;
use sablock::engine::{Hold, Mode};

use super::reached::{Reached, reached};

/// The number of permits that each semaphore has.
pub const PERMITS: u32 = 2;

/// The data that a lock guards.
pub struct Room {
    what: &'static str,
    inside: Mutex<Inside>,
    /// Somebody has overwritten the words of its lock: nothing is promised any more but that all waits end.
    is_spoiled: AtomicBool,
}

#[derive(Default, Debug)]
struct Inside {
    alone: u32,
    together: u32,
    permits: u32,
    /// The numbers of those inside.
    who: Vec<usize>,
    /// Threads that ended inside alone, and how many of these ends were reported.
    ended: u64,
    reported: u64,
}

impl Inside {
    fn count(&mut self, hold: Hold) -> (&mut u32, u32) {
        match hold.mode() {
            Some(Mode::Exclusive) => (&mut self.alone, 1),
            Some(Mode::Shared) => (&mut self.together, 1),
            None => (&mut self.permits, hold.count()),
        }
    }

    fn is_allowed(&self) -> bool {
        let Self { alone, together, permits, ended, reported, .. } = *self;
        alone <= 1 && (alone == 0 || together == 0) && permits <= PERMITS && reported <= ended
    }
}

impl Room {
    pub fn new(what: &'static str) -> Self {
        Self { what, inside: Mutex::default(), is_spoiled: AtomicBool::new(false) }
    }

    pub fn is_spoiled(&self) -> bool {
        self.is_spoiled.load(Ordering::SeqCst)
    }

    pub fn spoil(&self) {
        self.is_spoiled.store(true, Ordering::SeqCst);
    }

    fn change(&self, change: impl FnOnce(&mut Inside)) {
        let mut inside = self.inside.lock().unwrap();
        change(&mut inside);
        assert!(inside.is_allowed() || self.is_spoiled(), "in the {}: {inside:?}", self.what);
    }

    /// Whether the actor of that number is inside.
    pub fn has(&self, number: usize) -> bool {
        self.inside.lock().unwrap().who.contains(&number)
    }

    /// The actor of that number is inside from now on.
    pub fn enter(&self, number: usize, hold: Hold, abandoned_by: Option<AgentId>) {
        let is_reported = u64::from(abandoned_by.is_some());
        reached(Reached::EndReported, is_reported);
        self.change(|inside| {
            inside.reported += is_reported;
            inside.who.push(number);
            let (count, more) = inside.count(hold);
            *count += more;
        });
    }

    /// It is inside no more; to be called before others can know.
    pub fn leave(&self, number: usize, hold: Hold) {
        self.change(|inside| {
            let at = inside.who.iter().position(|who| *who == number).expect("it is inside");
            inside.who.swap_remove(at);
            let (count, less) = inside.count(hold);
            *count -= less;
        });
    }

    /// It is inside, and its thread ends.
    pub fn end(&self, number: usize, hold: Hold) {
        self.leave(number, hold);
        self.change(|inside| inside.ended += u64::from(hold.is_exclusive()));
        reached(if hold.mode().is_none() { Reached::PermitsGivenBack } else { Reached::EndedInside }, 1);
    }

    /// Somebody who is inside holds it in another way.
    pub fn exchange(&self, from: Hold, to: Hold) {
        self.change(|inside| {
            *inside.count(from).0 -= 1;
            *inside.count(to).0 += 1;
        });
    }

    /// Expects that nobody is inside any more, and each end was reported, but for the last if `is_marked`.
    pub fn expect_all_reported(&self, is_marked: bool) {
        let inside = self.inside.lock().unwrap();
        let is_reported = inside.reported == inside.ended || is_marked;
        assert!(is_reported || self.is_spoiled(), "in the {}: {inside:?}", self.what);
    }
}
