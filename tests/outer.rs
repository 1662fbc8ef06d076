//! Requests for locks outside, at random, against a store that grants one lock to one request after the other, and against the kernel
//! with a file: nothing is held twice, and nothing stays.

#![cfg(not(any(loom, shuttle)))]

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use sablock::clients::{ClientLoop, Clients, InFile, InStore, Names, Outside};
use sablock::desk::{Answer, Desk, Lease, Question, Task};
use sablock::engine::clock::Clock;
use sablock::engine::{Engine, EventLoop, Limit, Outcome, Patience, Reply, Settled};
use sablock::files::{Asker, Directory, LockMode, NamedFile};

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(64, 70_000, Patience::default(), Box::new(Clock::new(engine))))
}

fn event_loop() -> ClientLoop<'static> {
    static NAMES: OnceLock<Names<'static>> = OnceLock::new();
    let names = NAMES.get_or_init(|| Names::new(engine()));
    EventLoop::with_clients(engine(), engine().agents.add(1).unwrap(), Clients::new(names))
}

fn question() -> Question {
    Question { store: 1, verb: 0, name: vec![97], is_shared: false, flags: 0, payload: String::new(), thread: 0 }
}

fn granted() -> Answer {
    Answer::Granted { fence: 7, lease: Lease::endless(), is_abandoned: false, text: String::new() }
}

/// A store that grants one lock to one request after the other.
#[derive(Default)]
struct Store {
    holder: Option<u64>,
    line: VecDeque<u64>,
    grants: u32,
    unwanted: u32,
}

impl Store {
    fn turn(&mut self, desk: &Desk) {
        while let Some(task) = desk.next() {
            match task {
                Task::Ask(number, _) => self.line.push_back(number),
                Task::Cancel(number) => self.line.retain(|other| *other != number),
                Task::Release(number, _) => {
                    assert_eq!(self.holder.take(), Some(number), "released by who holds it, once");
                }
            }
        }
        while self.holder.is_none()
            && let Some(number) = self.line.pop_front()
        {
            self.grants += 1;
            if desk.answer(number, granted()) {
                self.holder = Some(number);
            } else {
                self.unwanted += 1;
            }
        }
    }
}

/// The news of one lock.
#[derive(Default)]
struct Visits {
    /// The agent inside, 0 for nobody.
    inside: AtomicU32,
    held: AtomicU32,
}

impl Visits {
    fn visit(&self, here: &mut ClientLoop<'static>, number: u64) {
        let (id, hold) = (here.agent().id, here.remove_held(number).expect("it was granted"));
        assert_eq!(self.inside.swap(id, Ordering::SeqCst), 0, "alone");
        self.held.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.inside.swap(0, Ordering::SeqCst), id, "alone");
        hold.give_back(true);
    }
}

/// Asks again and again. `left` is called after each wait that has ended without the lock.
fn act<K: Outside>(
    actor: u64,
    until: Instant,
    visits: &Visits,
    ask: impl Fn() -> (K, K::Question),
    left: impl Fn(&mut ClientLoop<'static>),
) {
    let mut seed = actor * 7919 + 1;
    let mut random = move |below: u64| {
        // Knuth's MMIX generator.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    while Instant::now() < until {
        let mut here = event_loop();
        for _ in 0..random(30) {
            let (kind, question) = ask();
            let limit = Limit::after(Duration::from_micros(random(300)));
            if actor.is_multiple_of(2) {
                let agent = Arc::clone(here.agent());
                let mut pause = || random(20) > 0;
                let got = ClientLoop::ask_outside_blocking(engine(), &agent, kind, question, limit, &mut pause);
                if let Ok(Some(answered)) = got {
                    let (number, _) = here.take_in(answered);
                    visits.visit(&mut here, number);
                }
                continue;
            }
            let limit = if random(2) == 0 { limit } else { Limit::Revocable };
            let (Reply::Pending { token, .. }, _) = here.ask_outside(kind, question, limit, None).unwrap() else {
                panic!()
            };
            let end = Instant::now() + Duration::from_micros(random(300));
            loop {
                match here.next_settled() {
                    Some(_) if random(10) == 0 => here.refuse(),
                    Some(Settled { outcome: Ok(Outcome::TimedOut), .. }) => left(&mut here),
                    Some(_) => {
                        if let Some((number, _)) = here.take_told() {
                            visits.visit(&mut here, number);
                        }
                    }
                    None if Instant::now() >= end => {
                        if random(4) > 0 && here.cancel(token).is_some() {
                            left(&mut here);
                        }
                        break;
                    }
                    None => thread::yield_now(),
                }
            }
        }
        here.end();
    }
}

/// Has six actors act.
fn storm(act: impl Fn(u64, Instant) + Sync) {
    let (act, until) = (&act, Instant::now() + Duration::from_secs(2));
    thread::scope(|scope| {
        (0..6).for_each(|actor| drop(scope.spawn(move || act(actor, until))));
    });
}

#[test]
fn a_storm_of_timeouts_cancels_interruptions_and_ends_leaves_nothing_held_in_a_store() {
    let (desk, is_over, visits) = (Arc::new(Desk::default()), AtomicBool::new(false), Visits::default());
    desk.serve(Box::new(|| {}));
    let store = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut store = Store::default();
            while !is_over.load(Ordering::SeqCst) {
                store.turn(&desk);
                thread::yield_now();
            }
            store.turn(&desk);
            store
        });
        let ask = || (InStore::at(&desk, &question(), false), question());
        let is_well = std::panic::catch_unwind(AssertUnwindSafe(|| {
            storm(|actor, until| act(actor, until, &visits, ask, |_| ()))
        }));
        is_over.store(true, Ordering::SeqCst);
        let store = worker.join().unwrap();
        assert!(is_well.is_ok());
        store
    });
    assert_eq!((store.holder, store.line.len()), (None, 0));
    assert!(visits.held.into_inner() > 0 && store.unwanted > 0 && store.grants > store.unwanted);
    #[cfg(feature = "audit")]
    assert_eq!((engine().audit(), desk.left()), (vec![], vec![]));
}

/// Waits until nothing is left in the kernel of the wait that has ended.
fn until_left(here: &mut ClientLoop<'static>) {
    let Ok(Reply::Pending { token, .. }) = here.wait_left() else { return };
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match here.next_settled() {
            Some(settled) if settled.token == token => return,
            // The reply is of an earlier wait, which was not taken back.
            Some(_) => here.refuse(),
            None => thread::yield_now(),
        }
        assert!(Instant::now() < end, "nobody says that it is gone");
    }
}

#[test]
fn a_storm_of_timeouts_cancels_interruptions_and_ends_leaves_nothing_held_of_a_file() {
    let path = env::temp_dir().join(format!("sablock-outer-{}", process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    let directory = Arc::new(Directory::open(Some(&path)).unwrap());
    let (name, visits) = (NamedFile::get(&directory, &[97]), Visits::default());
    let asker = Asker { thread: 0, wants_fence: false, is_part: false };
    let ask = || (InFile::of(&name, LockMode::Exclusive), asker);
    storm(|actor, until| act(actor, until, &visits, ask, until_left));
    assert!(visits.held.into_inner() > 0);
    let end = Instant::now() + Duration::from_secs(20);
    let hold = loop {
        if let Some(hold) = name.try_lock(LockMode::Exclusive, asker).unwrap() {
            break hold;
        }
        assert!(Instant::now() < end, "it is held still");
        thread::yield_now();
    };
    assert!(!hold.is_abandoned(), "nobody's code has ended inside");
    hold.release();
    #[cfg(feature = "audit")]
    while !sablock::files::audit::left().is_empty() {
        assert!(Instant::now() < end, "{:?}", sablock::files::audit::left());
        thread::yield_now();
    }
    drop((name, directory));
    fs::remove_dir_all(&path).unwrap();
}
