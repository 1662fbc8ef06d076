//! The core on real threads, with the real clock: what the loom models are too small for.
//! Also what a sanitizer runs (see docs/development/commands.md).
#![cfg(not(loom))]

mod common;

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use common::{Locks as _, LocksAsync as _};
use sablock::agents::{Agent, Wake};
use sablock::engine::HoldOwner;
use sablock::engine::clock::Clock;
use sablock::engine::{Change, Engine, Patience};
use sablock::engine::{EventLoop, Reply, Settled};
use sablock::engine::{Limit, Outcome};
use sablock::memory::Place;
use sablock::primitives::mutex::MUTEX;

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(16, 70_000, Patience::default(), Box::new(Clock::new(engine))))
}

/// A word and what it guards.
#[derive(Default)]
struct Guarded {
    word: AtomicU32,
    count: UnsafeCell<u64>,
    inside: AtomicU32,
    abandoned: AtomicU64,
}

// SAFETY: `count` is touched by the holder of `word` only, which `inside` checks.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn place(&self) -> Place {
        // SAFETY: an aligned atomic, kept by every thread that waits for it.
        unsafe { Place::new(NonNull::from(&self.word), 0) }
    }

    fn lock(&self, agent: &Arc<Agent>, limit: Limit) -> bool {
        if self.word.compare_exchange(0, agent.id, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return true;
        }
        match engine().lock(agent, self.place(), HoldOwner::Thread, limit, &mut || true).unwrap() {
            Outcome::TimedOut | Outcome::Refused { .. } => false,
            Outcome::Granted { abandoned_by, .. } => {
                self.note(agent, abandoned_by);
                true
            }
        }
    }

    /// Counts a reported end inside, and clears its mark.
    fn note(&self, agent: &Arc<Agent>, abandoned_by: Option<u32>) {
        if abandoned_by.is_some() {
            self.abandoned.fetch_add(1, Ordering::SeqCst);
            engine().change(agent, &MUTEX, self.place(), Change::MarkConsistent).unwrap();
        }
    }

    fn work(&self) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two holders at once");
        // SAFETY: the caller holds the word.
        unsafe { *self.count.get() += 1 };
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn unlock(&self, agent: &Arc<Agent>) {
        if self.word.compare_exchange(agent.id, 0, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            engine().unlock(agent, self.place(), HoldOwner::Thread).unwrap();
        }
    }

    fn total(self: Arc<Self>) -> u64 {
        assert_eq!(self.word.load(Ordering::SeqCst), 0, "left locked, or marked");
        // SAFETY: all threads are joined.
        unsafe { *self.count.get() }
    }
}

#[derive(Default)]
struct Turn(Mutex<bool>, Condvar);

struct LoopWaker(Arc<Turn>);

impl Wake for LoopWaker {
    fn wake(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_one();
    }
}

/// A thread that awaits.
struct Loop {
    waits: EventLoop<'static>,
    turn: Arc<Turn>,
}

impl Loop {
    fn new() -> Self {
        let agent = engine().agents.add(0).unwrap();
        let turn = Arc::<Turn>::default();
        agent.set_waker(Some(Box::new(LoopWaker(Arc::clone(&turn)))));
        Self { waits: EventLoop::new(engine(), agent), turn }
    }

    /// Sleeps until the next wait for a lock is over.
    fn attempt(&mut self) -> Option<Outcome> {
        self.settle().outcome.ok()
    }

    /// Sleeps until the next wait is over.
    fn settle(&mut self) -> Settled {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(settled) = self.waits.next_settled() {
                return settled;
            }
            let mut is_due = self.turn.0.lock().unwrap();
            while !*is_due {
                let left = patience.saturating_duration_since(Instant::now());
                assert!(!left.is_zero(), "a pending wait was forgotten");
                is_due = self.turn.1.wait_timeout(is_due, left).unwrap().0;
            }
            *is_due = false;
        }
    }
}

#[test]
fn totals_are_exact_between_threads_that_block_and_loops_that_await() {
    const HOLDS: u64 = 20_000;
    let guarded = Arc::<Guarded>::default();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let agent = engine().agents.add(0).unwrap();
                for _ in 0..HOLDS {
                    assert!(guarded.lock(&agent, Limit::Endless));
                    guarded.work();
                    guarded.unlock(&agent);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut awaiting = Loop::new();
                let agent = Arc::clone(awaiting.waits.agent());
                for _ in 0..HOLDS / 10 {
                    if let Reply::Pending { .. } =
                        awaiting.waits.lock(guarded.place(), HoldOwner::Thread, Limit::Endless).unwrap()
                    {
                        assert!(matches!(awaiting.attempt(), Some(Outcome::Granted { .. })));
                    }
                    guarded.work();
                    guarded.unlock(&agent);
                }
            });
        }
    });
    assert_eq!(guarded.total(), 3 * HOLDS + 2 * (HOLDS / 10));
}

#[test]
fn waiters_that_give_up_lose_nobodys_turn() {
    let guarded = Arc::<Guarded>::default();
    let holds = AtomicU64::new(0);
    thread::scope(|scope| {
        for hasty in [false, true, true] {
            let (guarded, holds) = (&guarded, &holds);
            scope.spawn(move || {
                let agent = engine().agents.add(0).unwrap();
                for round in 0..5_000_u64 {
                    let limit = if hasty { Limit::after(Duration::from_micros(round % 200)) } else { Limit::Endless };
                    if guarded.lock(&agent, limit) {
                        guarded.work();
                        holds.fetch_add(1, Ordering::SeqCst);
                        guarded.unlock(&agent);
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut awaiting = Loop::new();
            let agent = Arc::clone(awaiting.waits.agent());
            for round in 0..2_000_u64 {
                let limit = Limit::after(Duration::from_micros(1500 * (round % 2)));
                let attempt = match awaiting.waits.lock(guarded.place(), HoldOwner::Thread, limit).unwrap() {
                    Reply::Now(attempt) => attempt,
                    Reply::Pending { token, .. } if round % 3 == 0 && awaiting.waits.cancel(token).is_some() => {
                        Outcome::TimedOut
                    }
                    Reply::Pending { .. } => awaiting.attempt().unwrap(),
                };
                if matches!(attempt, Outcome::Granted { .. }) {
                    guarded.work();
                    holds.fetch_add(1, Ordering::SeqCst);
                    guarded.unlock(&agent);
                }
            }
        });
    });
    assert_eq!(guarded.total(), holds.into_inner());
}

#[test]
fn each_end_inside_is_reported_once() {
    const ENDS: u64 = 300;
    let guarded = Arc::<Guarded>::default();
    let ended = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let agent = engine().agents.add(0).unwrap();
                while ended.load(Ordering::SeqCst) < 2 {
                    assert!(guarded.lock(&agent, Limit::Endless));
                    guarded.work();
                    guarded.unlock(&agent);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ENDS / 2 {
                    let mut ending = Loop::new();
                    let agent = Arc::clone(ending.waits.agent());
                    match ending.waits.lock(guarded.place(), HoldOwner::Thread, Limit::Endless).unwrap() {
                        Reply::Now(Outcome::Granted { abandoned_by, .. }) => guarded.note(&agent, abandoned_by),
                        Reply::Pending { .. } => match ending.attempt() {
                            Some(Outcome::Granted { abandoned_by, .. }) => guarded.note(&agent, abandoned_by),
                            other => panic!("{other:?}"),
                        },
                        other => panic!("{other:?}"),
                    }
                    // Asking again says that the code knows of the hold: it ends inside.
                    assert_eq!(ending.waits.next_settled(), None);
                    ending.waits.end();
                }
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    let agent = engine().agents.add(0).unwrap();
    assert!(guarded.lock(&agent, Limit::Endless));
    guarded.unlock(&agent);
    assert_eq!(guarded.abandoned.load(Ordering::SeqCst), ENDS);
}

#[test]
fn a_deadline_of_an_awaiting_thread_is_kept() {
    let guarded = Guarded::default();
    let holder = engine().agents.add(0).unwrap();
    assert!(guarded.lock(&holder, Limit::Endless));
    let mut awaiting = Loop::new();
    let start = Instant::now();
    let request =
        awaiting.waits.lock(guarded.place(), HoldOwner::Thread, Limit::after(Duration::from_millis(20))).unwrap();
    let Reply::Pending { token, .. } = request else { panic!("{request:?}") };
    assert_eq!(
        awaiting.settle(),
        Settled { token, place: guarded.place(), is_for_hold: true, outcome: Ok(Outcome::TimedOut) }
    );
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert_eq!(awaiting.waits.pending(), 0);
}

#[test]
fn an_interrupted_thread_leaves_the_queue() {
    let guarded = Guarded::default();
    let holder = engine().agents.add(0).unwrap();
    assert!(guarded.lock(&holder, Limit::Endless));
    let ending = engine().agents.add(0).unwrap();
    let outcome = engine().lock(&ending, guarded.place(), HoldOwner::Thread, Limit::Endless, &mut || false);
    assert!(matches!(outcome, Err(sablock::engine::Failure::Interrupted)));
    assert!(engine().inspect(&MUTEX, guarded.place()).waiters.is_empty());
}
