//! The words that each primitive takes for its own, and what a section makes of them: all values of a table, beside a queue and
//! without one.
#![cfg(not(loom))]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use sablock::agents::Agents;
use sablock::engine::{Change, Facts, Hold, HoldOwner, Primitive, Request, State};
use sablock::memory::Place;
use sablock::primitives::barrier::{self, ARRIVED, BROKEN};
use sablock::primitives::event::{AUTO_RESET_EVENT, MANUAL_RESET_EVENT, SET};
use sablock::primitives::futex::FUTEX;
use sablock::primitives::latch::{LATCH, MAX_COUNT};
use sablock::primitives::mutex::{ABANDONED, GUARDED, MUTEX, OWNER, RESERVED, WAITING};
use sablock::primitives::named::NAMED;
use sablock::primitives::once::{DONE, ONCE};
use sablock::primitives::rwlock::{self, RWLOCK, SHARED};
use sablock::primitives::semaphore::{self, FAIR_SEMAPHORE, MAX_PERMITS, SEMAPHORE, TAKEN};

const FIRST: u32 = 70_000;
/// The id of no thread.
const NOBODY: u32 = FIRST + 1;

/// Which words are a primitive's own: without a queue, with one, and with one while it is reserved.
struct Words {
    primitive: &'static dyn Primitive,
    waiting: u32,
    alone: Vec<u32>,
    queued: Vec<u32>,
    reserved: Vec<u32>,
}

/// With W and without it.
fn both(waiting: u32, words: &[u32]) -> Vec<u32> {
    words.iter().flat_map(|word| [*word, word | waiting]).collect()
}

fn event(primitive: &'static dyn Primitive) -> Words {
    let alone = vec![0, SET];
    Words { primitive, waiting: WAITING, queued: both(WAITING, &alone), reserved: both(WAITING, &alone), alone }
}

fn semaphore(primitive: &'static dyn Primitive) -> Words {
    // The number of what is taken has a sign.
    let alone = vec![0, 1, MAX_PERMITS, TAKEN, TAKEN - MAX_PERMITS + 1];
    let queued = both(semaphore::WAITING, &alone);
    Words { primitive, waiting: semaphore::WAITING, reserved: queued.clone(), queued, alone }
}

fn all() -> Vec<Words> {
    let latch = vec![0, 1, MAX_COUNT];
    let running = vec![0, FIRST, ABANDONED, ABANDONED | FIRST, DONE];
    let held = [FIRST, FIRST | GUARDED, FIRST | ABANDONED, FIRST | GUARDED | ABANDONED];
    let read = [SHARED | 1, SHARED | OWNER, SHARED | 1 | ABANDONED];
    let marked = ABANDONED;
    let kept = [RESERVED, RESERVED | ABANDONED];
    let kept_for_readers = [SHARED | RESERVED, SHARED | RESERVED | 1];
    let kept_for_readers = [kept_for_readers, kept_for_readers.map(|word| word | ABANDONED)].concat();
    let free_or = |words: &[u32]| [&[0, marked][..], words].concat();
    // W of a free word would be for nobody: what has no mark, holder or reservation is anybody's.
    let queued = |words: &[u32]| [vec![0], both(WAITING, words), both(WAITING, &[marked])].concat();
    vec![
        event(&MANUAL_RESET_EVENT),
        event(&AUTO_RESET_EVENT),
        semaphore(&SEMAPHORE),
        semaphore(&FAIR_SEMAPHORE),
        Words {
            primitive: &LATCH,
            waiting: WAITING,
            queued: both(WAITING, &latch),
            reserved: both(WAITING, &latch),
            alone: latch,
        },
        Words {
            primitive: &ONCE,
            waiting: WAITING,
            queued: both(WAITING, &running),
            reserved: both(WAITING, &running),
            alone: running,
        },
        Words {
            primitive: &barrier::BARRIER,
            waiting: barrier::WAITING,
            alone: vec![0, BROKEN],
            // A waiter has come.
            queued: vec![barrier::WAITING | 1, barrier::WAITING | ARRIVED],
            reserved: vec![barrier::WAITING | 1, barrier::WAITING | ARRIVED],
        },
        Words {
            primitive: &MUTEX,
            waiting: WAITING,
            alone: free_or(&held),
            queued: queued(&held),
            reserved: both(WAITING, &kept),
        },
        Words {
            primitive: &RWLOCK,
            waiting: WAITING,
            alone: free_or(&[&held[..], &read].concat()),
            queued: queued(&[&held[..], &read].concat()),
            reserved: both(WAITING, &[&kept[..], &kept_for_readers].concat()),
        },
    ]
}

/// Each word of some table, each with one bit more or less, and holders that nobody is.
fn candidates() -> Vec<u32> {
    let named: Vec<u32> = all()
        .into_iter()
        .flat_map(|Words { alone, queued, reserved, .. }| [alone, queued, reserved].concat())
        .collect();
    let strange = named.iter().flat_map(|word| (0..32).map(move |bit| word ^ 1 << bit));
    let strangers = [NOBODY, NOBODY | GUARDED, NOBODY | WAITING, NOBODY | ABANDONED, SHARED | NOBODY];
    let mut words: Vec<u32> = named.iter().copied().chain(strange).chain(strangers).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Whether words of a table that hold a number have any other number in its place.
fn is_in(Words { primitive, waiting, .. }: &Words, words: &[u32], word: u32) -> bool {
    let number = match primitive.about().name {
        "Latch" => MAX_COUNT,
        "Barrier" => ARRIVED,
        "Semaphore" => TAKEN,
        "RwLock" if word & SHARED != 0 => OWNER,
        _ => 0,
    };
    let same = |other: &u32| {
        let [mine, others] = [word & number, other & number];
        word & !number == other & !number && (mine == others || mine != 0 && others != 0)
    };
    debug_assert!(waiting & number == 0);
    words.iter().any(same)
}

fn place_of(memory: &[AtomicU32; 2]) -> Place {
    // SAFETY: two aligned atomics, which outlive all uses of the place: these end inside a test.
    unsafe { Place::new(NonNull::from(memory).cast(), 0) }
}

#[test]
fn a_section_takes_the_words_of_its_primitive_and_leaves_all_others_alone() {
    let agents = Agents::new(FIRST);
    let _me = agents.add(1).unwrap();
    for table in all() {
        let Words { primitive, waiting, ref alone, ref queued, ref reserved } = table;
        let name = primitive.about().name;
        for (words, is_queued, is_reserved) in [(alone, false, false), (queued, true, false), (reserved, true, true)] {
            for word in candidates() {
                let memory = [AtomicU32::new(word), AtomicU32::new(0)];
                let place = place_of(&memory);
                let is_reserved = is_reserved && reserved != queued;
                let frozen = primitive.freeze(place, &Facts { is_queued, is_reserved, agents: &agents });
                let expected = is_in(&table, words, word);
                let what = format!("{name} {word:#x}, queued: {is_queued}, reserved: {is_reserved}");
                assert_eq!(frozen.is_ok(), expected, "{what}");
                let Ok(state) = frozen else {
                    assert_eq!(memory[0].load(Ordering::Relaxed), word, "{what}: left alone");
                    continue;
                };
                assert_eq!(memory[0].load(Ordering::Relaxed), word | waiting, "{what}: no fast path may change it");
                assert_eq!(primitive.is_waiting(state), word & waiting != 0, "{what}: whether W was set");
                assert_eq!(primitive.read(place), State(state.0 | u64::from(waiting)), "{what}: read");
                primitive.thaw(place, state, state, false);
                assert_eq!(memory[0].load(Ordering::Relaxed) & waiting, 0, "{what}: nobody waits");
            }
        }
    }
}

#[test]
fn nobody_but_the_holder_says_that_all_is_well() {
    let mine = State(u64::from(FIRST | ABANDONED));
    for primitive in [&MUTEX as &dyn Primitive, &RWLOCK] {
        let change = |agent| primitive.change(mine, Change::MarkConsistent, agent);
        assert_eq!((change(FIRST), change(NOBODY)), (Some(State(u64::from(FIRST))), None));
        let downgrade = primitive.change(mine, Change::Downgrade(HoldOwner::Guard), FIRST);
        assert_eq!(downgrade, None, "it is not a guard's");
    }
}

#[test]
fn what_only_sections_change_has_changed_in_none_meanwhile() {
    assert!(FUTEX.is_waiting(State(0)) && NAMED.is_waiting(State(0)));
}

#[test]
fn a_spinner_sees_who_holds_it_and_who_waits() {
    let writer = Hold::exclusive(HoldOwner::Thread);
    for (primitive, words) in [
        (&MUTEX as &dyn Primitive, vec![0, FIRST, WAITING | FIRST, ABANDONED, RESERVED]),
        (&RWLOCK, vec![0, FIRST, WAITING | FIRST, ABANDONED, RESERVED, SHARED | 2, WAITING | SHARED | 2]),
    ] {
        for word in words {
            let glance = primitive.glance(place_of(&[AtomicU32::new(word), AtomicU32::new(0)]), writer).unwrap();
            let is_shared = word & SHARED != 0;
            let held = if is_shared { 0 } else { word & OWNER };
            assert_eq!((glance.is_free, glance.is_shared, glance.held), (word == 0, is_shared, held), "{word:#x}");
            let [is_waiting, is_reserved] = [WAITING, RESERVED].map(|bit| word & bit != 0);
            assert_eq!((glance.is_waiting, glance.is_reserved), (is_waiting, is_reserved), "{word:#x}");
        }
    }
}

#[test]
fn only_what_is_free_is_taken_in_one_step() {
    let mine = Hold::exclusive(HoldOwner::Thread);
    let guard = Hold::exclusive(HoldOwner::Guard);
    let reader = Hold::shared(HoldOwner::Thread);
    for (primitive, holds) in [
        (&MUTEX as &dyn Primitive, vec![(mine, FIRST), (guard, FIRST | GUARDED)]),
        (&RWLOCK, vec![(mine, FIRST), (guard, FIRST | GUARDED), (reader, SHARED | 1)]),
    ] {
        for (hold, taken) in holds {
            for word in [0, NOBODY, WAITING, ABANDONED, RESERVED] {
                let memory = [AtomicU32::new(word), AtomicU32::new(0)];
                let is_in = primitive.try_enter(place_of(&memory), Request::Hold(hold), FIRST);
                let left = memory[0].load(Ordering::Relaxed);
                assert_eq!((is_in, left), if word == 0 { (true, taken) } else { (false, word) }, "{word:#x}");
            }
        }
        let free = [AtomicU32::new(0), AtomicU32::new(0)];
        assert!(!primitive.try_enter(place_of(&free), Request::Notification, FIRST), "nothing is asked for");
    }
}

#[test]
fn the_mark_of_a_readers_writers_lock_is_one_bit() {
    for word in [0, FIRST, SHARED | 1, WAITING | FIRST] {
        let is_marked = |word| rwlock::Word(word).is_abandoned();
        assert_eq!((is_marked(word), is_marked(word | ABANDONED)), (false, true), "{word:#x}");
    }
}

#[test]
fn a_spinner_for_permits_sees_how_many_are_taken() {
    let two = Hold::permits(2, 3);
    for (word, is_free) in [(0, true), (1, true), (2, false), (3, false), (semaphore::WAITING | 1, false)] {
        let memory = [AtomicU32::new(word), AtomicU32::new(0)];
        let glance = SEMAPHORE.glance(place_of(&memory), two).unwrap();
        assert_eq!((glance.is_free, glance.held), (is_free, word & TAKEN), "{word:#x}");
        let is_waiting = word & semaphore::WAITING != 0;
        assert_eq!((glance.is_waiting, glance.is_shared, glance.is_reserved), (is_waiting, false, false), "{word:#x}");
        assert!(FAIR_SEMAPHORE.glance(place_of(&memory), two).is_none(), "in strict order nobody spins");
    }
}

#[test]
fn permits_are_added_to_those_that_are_there() {
    let add = |taken, count| SEMAPHORE.change(State(taken), Change::Add { count, of: 3 }, FIRST);
    assert_eq!((add(3, 1), add(3, 3)), (Some(State(2)), Some(State(0))));
    assert_eq!(add(0, MAX_PERMITS as i32 - 3 + 1), None, "more than there can be");
    assert_eq!(SEMAPHORE.change(State(3), Change::Break(0), FIRST), None);
}

#[test]
fn the_end_of_a_writer_is_remembered_where_no_reader_is_in() {
    let remembered = |word: u32| RWLOCK.remember_ended(State(word.into()), FIRST);
    let [of_writer, of_reader] = [ABANDONED, ABANDONED | SHARED | 1].map(remembered);
    assert_eq!(of_writer, State(u64::from(ABANDONED | FIRST)));
    assert_eq!(of_reader, State(u64::from(ABANDONED | SHARED | 1)), "the mark alone says so");
}

#[test]
fn what_was_kept_for_a_writer_is_free_and_waited_for() {
    let kept = State(u64::from(RESERVED | WAITING));
    assert_eq!(RWLOCK.unreserve(kept, Hold::exclusive(HoldOwner::Thread)), State(WAITING.into()));
}
