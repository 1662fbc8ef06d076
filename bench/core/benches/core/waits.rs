//! Very many asynchronous waits of one thread for a lock.

use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use sablock::engine::{EventLoop, Limit, Outcome, Reply, Request, Settled};
use sablock::memory::Place;
use sablock::primitives::mutex::MUTEX;

use crate::counters::{HOLD, engine};

const MANY: usize = 10_000;
const ACQUIRED: Outcome = Outcome::GRANTED;

/// A word, its holder, and the waits of the holder's thread.
struct Waits<'w> {
    word: Place,
    waits: EventLoop<'static>,
    _memory: &'w AtomicU32,
}

impl<'w> Waits<'w> {
    fn new(memory: &'w AtomicU32) -> Self {
        // SAFETY: an aligned atomic that outlives the waits.
        let word = unsafe { Place::new(NonNull::from(memory), 0) };
        let mut waits = EventLoop::new(engine(), engine().agents.add(0).expect("ids are left"));
        assert_eq!(
            waits.wait(&MUTEX, word, Request::Hold(HOLD), Limit::Endless).expect("a sound word"),
            Reply::Now(ACQUIRED)
        );
        Self { word, waits, _memory: memory }
    }

    fn enqueue(&mut self) -> u32 {
        match self.waits.wait(&MUTEX, self.word, Request::Hold(HOLD), Limit::Endless).expect("a sound word") {
            Reply::Pending { token, .. } => token,
            Reply::Now(attempt) => panic!("{attempt:?} of a word that is held"),
        }
    }

    /// The waits must end before the memory does.
    fn end(self) {
        self.waits.end();
        assert!(engine().inspect(&MUTEX, self.word).waiters.is_empty());
    }

    fn unlock(&self) {
        engine().release(self.waits.agent(), &MUTEX, self.word, HOLD).expect("it is held");
    }
}

/// One wait is begun and taken back, while ten thousand others are pending.
pub fn enqueue_and_cancel(criterion: &mut Criterion) {
    let memory = AtomicU32::new(0);
    let mut waits = Waits::new(&memory);
    for _ in 0..MANY {
        waits.enqueue();
    }
    criterion.bench_function("enqueue and cancel", |bencher| {
        bencher.iter(|| {
            let token = waits.enqueue();
            assert!(waits.waits.cancel(token).is_some());
        });
    });
    assert_eq!(waits.waits.pending(), MANY);
    waits.end();
}

/// All get the lock, each as soon as the one before has freed it.
pub fn hand_on(criterion: &mut Criterion) {
    let memory = AtomicU32::new(0);
    let mut waits = Waits::new(&memory);
    let mut group = criterion.benchmark_group("hand on");
    group.throughput(Throughput::Elements(MANY as u64));
    group.bench_function("10,000 pending", |bencher| {
        bencher.iter_custom(|iterations| {
            let mut took = Duration::ZERO;
            for _ in 0..iterations {
                let tokens: Vec<u32> = (0..MANY).map(|_| waits.enqueue()).collect();
                let start = Instant::now();
                for expected in tokens {
                    waits.unlock();
                    let Some(Settled { token, outcome, .. }) = waits.waits.next_settled() else {
                        panic!("a pending wait was forgotten")
                    };
                    assert_eq!((token, outcome), (expected, Ok(ACQUIRED)), "out of order");
                }
                took += start.elapsed();
            }
            took
        });
    });
    assert_eq!(waits.waits.pending(), 0);
    waits.end();
}
