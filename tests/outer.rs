//! Requests for locks outside, at random, against a store that grants one lock to one request after the other: nothing is held twice,
//! and nothing stays.

#![cfg(not(any(loom, shuttle)))]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use sablock::clients::{ClientLoop, Clients, Names};
use sablock::desk::{Answer, Desk, Lease, Question, Task};
use sablock::engine::clock::Clock;
use sablock::engine::{Engine, EventLoop, Limit, Patience, Reply};

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
    Answer::Granted { fence: 7, lease: Lease::endless(), text: String::new() }
}

/// A store that grants one lock to one request after the other.
#[derive(Default)]
struct Store {
    holder: Option<u32>,
    line: VecDeque<u32>,
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

/// The agent inside, 0 for nobody.
static INSIDE: AtomicU32 = AtomicU32::new(0);

fn run(here: &mut ClientLoop<'static>, number: u32, held: &AtomicU32) {
    let id = here.agent().id;
    assert_eq!(INSIDE.swap(id, Ordering::SeqCst), 0, "alone");
    held.fetch_add(1, Ordering::SeqCst);
    assert_eq!(INSIDE.swap(0, Ordering::SeqCst), id, "alone");
    here.release_outer(number, false);
}

fn act(actor: u64, desk: &Arc<Desk>, until: Instant, held: &AtomicU32) {
    let mut seed = actor * 7919 + 1;
    let mut random = move |below: u64| {
        // Knuth's MMIX generator.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    while Instant::now() < until {
        let mut here = event_loop();
        for _ in 0..random(30) {
            let limit = Limit::after(Duration::from_micros(random(300)));
            if actor.is_multiple_of(2) {
                let agent = Arc::clone(here.agent());
                let mut pause = || random(20) > 0;
                let got = ClientLoop::ask_outer_blocking(engine(), &agent, desk, question(), limit, &mut pause);
                if let Ok(Some(answered)) = got {
                    let (number, _) = here.take_in(answered);
                    run(&mut here, number, held);
                }
                continue;
            }
            let limit = if random(2) == 0 { limit } else { Limit::Revocable };
            let (Reply::Pending { token, .. }, _) = here.ask_outer(desk, question(), limit, None).unwrap() else {
                panic!()
            };
            let end = Instant::now() + Duration::from_micros(random(300));
            loop {
                match here.next_settled() {
                    Some(_) if random(10) == 0 => here.refuse(),
                    Some(_) => {
                        if let Some((number, _)) = here.take_answer() {
                            run(&mut here, number, held);
                        }
                    }
                    None if Instant::now() >= end => {
                        if random(4) > 0 {
                            here.cancel(token);
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

#[test]
fn a_storm_of_timeouts_cancels_interruptions_and_ends_leaves_nothing_held() {
    let (desk, is_over, held) = (Arc::new(Desk::default()), AtomicBool::new(false), AtomicU32::new(0));
    desk.serve(Box::new(|| {}));
    let until = Instant::now() + Duration::from_secs(2);
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
        let actors: Vec<_> = (0..6)
            .map(|actor| {
                scope.spawn({
                    let (desk, held) = (&desk, &held);
                    move || act(actor, desk, until, held)
                })
            })
            .collect();
        let ended: Vec<bool> = actors.into_iter().map(|actor| actor.join().is_ok()).collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(ended.into_iter().all(|ended| ended));
        worker.join().unwrap()
    });
    assert_eq!((store.holder, store.line.len()), (None, 0));
    assert!(held.load(Ordering::SeqCst) > 0 && store.unwanted > 0 && store.grants > store.unwanted);
    #[cfg(feature = "audit")]
    assert_eq!((engine().audit(), desk.left()), (vec![], vec![]));
}
