//! Two threads on two cores that wake each other in turn: what it takes there and back.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use parking_lot_core::{DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN};
use sablock::engine::Limit;
use sablock::engine::Outcome;
use sablock::engine::Request;
use sablock::memory::Place;
use sablock::primitives::futex::FUTEX;

use crate::counters::{Visitor, engine};

/// A way to sleep on a word and to wake whoever sleeps there.
trait Parking {
    /// The data that a thread needs for it.
    type Thread: Default;
    /// Sleeps while the word holds `value`; may return early.
    fn park(thread: &Self::Thread, word: &AtomicU32, value: u32);
    /// Wakes one, after the word has changed.
    fn unpark(word: &AtomicU32);
}

/// The limit: what the system has.
struct Futex;

impl Parking for Futex {
    type Thread = ();
    fn park((): &(), word: &AtomicU32, value: u32) {
        atomic_wait::wait(word, value);
    }
    fn unpark(word: &AtomicU32) {
        atomic_wait::wake_one(word);
    }
}

struct Sablock;

fn location(word: &AtomicU32) -> Place {
    // SAFETY: an aligned atomic, kept until both threads have ended their waits.
    unsafe { Place::new(NonNull::from(word), 0) }
}

impl Parking for Sablock {
    type Thread = Visitor;
    fn park(Visitor(agent): &Visitor, word: &AtomicU32, value: u32) {
        let outcome = engine().wait(
            agent,
            &FUTEX,
            location(word),
            Request::NotificationWhile(value.into()),
            Limit::Endless,
            &mut || true,
        );
        assert!(matches!(outcome, Ok(Outcome::GRANTED | Outcome::Refused { .. })));
    }
    fn unpark(word: &AtomicU32) {
        engine().notify(location(word), 1);
    }
}

struct ParkingLot;

impl Parking for ParkingLot {
    type Thread = ();
    fn park((): &(), word: &AtomicU32, value: u32) {
        let key = word.as_ptr() as usize;
        let still = || word.load(Ordering::SeqCst) == value;
        // SAFETY: the key is the address of a word that only these threads park on; `still` neither panics nor parks.
        unsafe { parking_lot_core::park(key, still, || {}, |_, _| {}, DEFAULT_PARK_TOKEN, None) };
    }
    fn unpark(word: &AtomicU32) {
        // SAFETY: as in `park`; the callback does nothing else.
        unsafe { parking_lot_core::unpark_one(word.as_ptr() as usize, |_| DEFAULT_UNPARK_TOKEN) };
    }
}

/// From the change of one word to the answer in the other.
pub fn round_trip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round trip");
    between_two::<Futex>(&mut group, "futex");
    between_two::<Sablock>(&mut group, "sablock");
    between_two::<ParkingLot>(&mut group, "parking_lot_core");
}

fn between_two<P: Parking>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str) {
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let turns = u32::try_from(iterations).expect("fewer turns than a word can count");
            let (there, back) = (AtomicU32::new(0), AtomicU32::new(0));
            thread::scope(|scope| {
                scope.spawn(|| {
                    pin(0);
                    let thread = P::Thread::default();
                    for turn in 1..=turns {
                        until::<P>(&thread, &there, turn);
                        tell::<P>(&back, turn);
                    }
                });
                let asking = scope.spawn(|| {
                    pin(1);
                    let thread = P::Thread::default();
                    let start = Instant::now();
                    for turn in 1..=turns {
                        tell::<P>(&there, turn);
                        until::<P>(&thread, &back, turn);
                    }
                    start.elapsed()
                });
                asking.join().expect("it does not panic")
            })
        });
    });
}

/// Keeps this thread on a core of its own, where the system can: on one core a wake takes a tenth of the time, and
/// the scheduler's choice would drown every difference.
fn pin(thread: usize) {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    if let Some(core) = cores.get(thread % cores.len().max(1)) {
        core_affinity::set_for_current(*core);
    }
}

fn until<P: Parking>(thread: &P::Thread, word: &AtomicU32, turn: u32) {
    loop {
        let seen = word.load(Ordering::SeqCst);
        if seen == turn {
            return;
        }
        assert_eq!(seen, turn - 1, "the other side has not waited for this one");
        P::park(thread, word, seen);
    }
}

fn tell<P: Parking>(word: &AtomicU32, turn: u32) {
    word.store(turn, Ordering::SeqCst);
    P::unpark(word);
}
