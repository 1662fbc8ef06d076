//! Which scenarios are checked when.

use super::fault::Fault;
use super::setting::{Engine, Kind, Order, mutex, named_lock, once, rwlock, semaphore};
use crate::check::Suite;
use crate::primitives::Request::{self, Exclusive, Permits, Shared};

type Asks = &'static [(usize, Request)];

const LOCK: Asks = &[(0, Exclusive)];
const BOTH: Asks = &[(0, Exclusive), (1, Exclusive)];
const READ: Asks = &[(0, Shared)];
const WRITE: Asks = &[(0, Exclusive)];
const READ_AND_LOCK: Asks = &[(0, Shared), (1, Exclusive)];
const WRITE_AND_LOCK: Asks = &[(0, Exclusive), (1, Exclusive)];
const ONE: Asks = &[(0, Permits(1))];
const TWO: Asks = &[(0, Permits(2))];
const ONE_OR_TWO: Asks = &[(0, Permits(1)), (0, Permits(2))];
const READ_OR_WRITE: Asks = &[(0, Shared), (0, Exclusive)];

/// A thread that blocks.
const fn b(asks: Asks) -> Kind {
    Kind { blocks: true, awaits: false, asks }
}

/// An event loop.
const fn l(asks: Asks) -> Kind {
    Kind { blocks: false, awaits: true, asks }
}

/// A thread that does both.
const fn x(asks: Asks) -> Kind {
    Kind { blocks: true, awaits: true, asks }
}

fn two_mutexes(agents: &[Kind]) -> Engine {
    Engine::of("two mutexes", &[mutex(), mutex()], agents)
}

fn mutex_and_name(agents: &[Kind]) -> Engine {
    Engine::of("a named lock and a mutex", &[named_lock(), mutex()], agents)
}

fn name(agents: &[Kind]) -> Engine {
    Engine::of("a named lock", &[named_lock()], agents)
}

fn run_once(agents: &[Kind]) -> Engine {
    Engine::of("once", &[once()], agents)
}

fn permits(agents: &[Kind]) -> Engine {
    Engine::of("two permits", &[semaphore(2, Order::Strict)], agents)
}

fn barging_permits(agents: &[Kind]) -> Engine {
    Engine::of("two barging permits", &[semaphore(2, Order::Barging)], agents)
}

fn barging_permit(agents: &[Kind]) -> Engine {
    Engine::of("a barging permit", &[semaphore(1, Order::Barging)], agents)
}

fn read_write(agents: &[Kind]) -> Engine {
    Engine::of("rwlock", &[rwlock()], agents)
}

fn read_write_and_mutex(agents: &[Kind]) -> Engine {
    Engine::of("rwlock and a mutex", &[rwlock(), mutex()], agents)
}

fn quick_scenarios() -> Vec<Engine> {
    vec![
        // Several words.
        two_mutexes(&[b(BOTH), b(BOTH)]).nests().deaths(2),
        two_mutexes(&[b(BOTH), b(BOTH)]).nests().patient().deaths(1),
        two_mutexes(&[b(BOTH), l(BOTH)]).nests().stalls().deaths(1),
        mutex_and_name(&[x(BOTH), b(BOTH)]).nests().patient().deaths(1),
        mutex_and_name(&[x(BOTH), b(BOTH), b(BOTH)]).nests().patient(),
        read_write_and_mutex(&[b(READ_AND_LOCK), b(WRITE_AND_LOCK)]).nests().patient().deaths(1),
        read_write_and_mutex(&[b(READ_AND_LOCK), b(READ_AND_LOCK), b(WRITE)]).nests().patient(),
        // Strict order.
        name(&[b(LOCK), b(LOCK), l(LOCK)]).stalls().deaths(1),
        run_once(&[b(LOCK), b(LOCK), l(LOCK)]).stalls().deaths(1),
        run_once(&[b(LOCK), l(LOCK)]).sections().deaths(2),
        run_once(&[b(LOCK), b(LOCK), l(LOCK)]).liveness(),
        permits(&[b(ONE), b(TWO), l(ONE)]).stalls().deaths(1),
        permits(&[b(ONE), l(TWO), l(ONE)]).stalls().deaths(1),
        permits(&[b(ONE), b(TWO)]).sections().deaths(1),
        permits(&[b(ONE), b(TWO), l(ONE)]).liveness(),
        // Permits that newcomers may take.
        barging_permits(&[b(ONE), b(TWO), l(ONE)]).stalls().deaths(1),
        barging_permits(&[b(ONE), l(TWO), l(ONE)]).stalls().deaths(1),
        barging_permits(&[b(ONE), b(TWO)]).slices().sections().tries().deaths(1),
        barging_permits(&[b(ONE), b(TWO), b(ONE)]).liveness(),
        barging_permits(&[b(ONE), b(TWO), b(ONE)]).slices().liveness(),
        barging_permits(&[b(ONE), b(TWO), l(ONE)]).slices().stalls().short_turns().liveness(),
        barging_permits(&[b(ONE), l(TWO), b(ONE)]).slices().stalls().short_turns().liveness(),
        barging_permits(&[b(TWO), l(TWO), l(ONE)]).stalls().short_turns().liveness(),
        // The next of a loop with several waits may ask for something else.
        barging_permit(&[b(ONE), l(ONE_OR_TWO), l(ONE)]).stalls(),
        read_write(&[b(READ), l(READ_OR_WRITE), l(READ)]).stalls(),
        read_write(&[b(WRITE), l(READ_OR_WRITE), l(READ_OR_WRITE)]),
        // The clock ends the waits of promises, whatever their loops do.
        name(&[b(LOCK), b(LOCK), l(LOCK)]).deadlines().stalls().deaths(1),
        name(&[b(LOCK), l(LOCK), b(LOCK)]).patient().deadlines().stalls().liveness(),
        permits(&[b(ONE), l(TWO), b(ONE)]).patient().deadlines().stalls().liveness(),
        read_write(&[b(READ), l(WRITE), b(READ)]).patient().deadlines().stalls().liveness(),
        mutex_and_name(&[x(BOTH), b(BOTH)]).nests().patient().deadlines().deaths(1),
        // Batches of readers, counted in the word, or in slots.
        read_write(&[b(READ), b(READ), b(WRITE)]).deaths(1),
        read_write(&[b(READ), l(READ), b(WRITE)]).stalls().deaths(1),
        read_write(&[b(READ), l(WRITE)]).sections().stalls().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE)]).slots().tries().deaths(1),
        read_write(&[b(READ), l(READ), b(WRITE)]).slots().stalls().deaths(1),
        read_write(&[b(READ), b(WRITE)]).slots().sections().tries().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE)]).modes().deaths(1),
        read_write(&[b(WRITE), l(READ), b(WRITE)]).modes().stalls(),
        read_write(&[b(READ), b(READ), b(WRITE)]).liveness(),
        read_write(&[b(READ), b(READ), l(WRITE)]).short_turns().liveness(),
        read_write(&[b(READ), b(WRITE), l(READ)]).short_turns().liveness(),
        read_write(&[b(WRITE), b(WRITE), l(READ)]).short_turns().liveness(),
        read_write(&[b(READ), l(READ), l(WRITE)]).stalls().short_turns().liveness(),
        read_write(&[b(READ), b(READ), b(WRITE)]).slots().tries().deaths(1).liveness(),
        // Between two slices, too, nobody starves.
        read_write(&[b(READ), b(READ), b(WRITE)]).slices().liveness(),
        read_write(&[b(READ), b(READ), b(WRITE)]).slices().modes().liveness(),
        read_write(&[b(READ), b(READ), l(WRITE)]).slices().stalls().short_turns().liveness(),
        read_write(&[b(READ), l(READ), b(WRITE)]).slices().stalls().short_turns().liveness(),
        read_write(&[b(WRITE), b(WRITE), l(READ)]).slices().stalls().short_turns().liveness(),
        read_write(&[l(READ), l(READ), b(WRITE)]).slices().stalls().short_turns().liveness(),
        read_write(&[l(READ), l(READ), l(WRITE)]).stalls().short_turns().liveness(),
        read_write(&[b(READ), l(READ), b(WRITE)]).slices().stalls().deaths(1),
        read_write(&[l(READ), b(WRITE), l(WRITE)]).stalls().deaths(1),
    ]
}

fn full_scenarios() -> Vec<Engine> {
    let large = vec![
        two_mutexes(&[b(BOTH), b(BOTH), l(BOTH)]).nests().deaths(1),
        read_write_and_mutex(&[b(READ_AND_LOCK), b(READ_AND_LOCK), b(WRITE_AND_LOCK)]).nests().patient(),
        read_write(&[b(READ), b(WRITE)]).modes().sections().deaths(2),
        mutex_and_name(&[x(BOTH), b(BOTH), b(BOTH)]).nests().patient().deaths(1),
        name(&[b(LOCK), b(LOCK), l(LOCK), l(LOCK)]).stalls().deaths(2),
        name(&[b(LOCK), l(LOCK), l(LOCK)]).deaths(1).liveness(),
        permits(&[b(ONE), b(TWO), l(ONE), l(TWO)]).stalls().deaths(1),
        permits(&[b(ONE), b(TWO), b(ONE)]).sections().deaths(2),
        permits(&[b(ONE), l(TWO), b(ONE)]).sections().adding().deaths(1),
        barging_permits(&[b(ONE), b(TWO), l(ONE), l(TWO)]).stalls().short_turns().liveness(),
        barging_permits(&[b(ONE), b(ONE), l(TWO), b(ONE)]).stalls().deaths(1),
        barging_permits(&[b(ONE), b(TWO), b(ONE)]).sections().tries().deaths(2),
        read_write(&[b(READ), b(READ), l(READ), b(WRITE)]).stalls().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE), l(WRITE)]).stalls().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE)]).sections().deaths(2),
        read_write(&[b(READ), b(READ), l(READ), b(WRITE)]).slots().stalls().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE)]).slots().sections().tries().deaths(2),
        read_write(&[b(READ), l(READ), b(WRITE), l(WRITE)]).slots().stalls().deaths(1),
        read_write(&[b(READ), l(READ), b(WRITE), l(WRITE)]).stalls().short_turns().liveness(),
        read_write(&[b(READ), l(READ), l(WRITE)]).slots().stalls().short_turns().liveness(),
        read_write(&[b(READ), b(READ), b(WRITE), b(WRITE)]).slots().deaths(1).liveness(),
        read_write(&[b(READ), l(READ), b(WRITE), l(WRITE)]).slices().stalls().short_turns().liveness(),
        read_write(&[l(READ), l(READ), b(WRITE), b(WRITE)]).stalls().short_turns().liveness(),
        read_write(&[b(READ), b(READ), b(WRITE), l(WRITE)]).slices().stalls().short_turns().liveness(),
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

fn hunting_grounds() -> Vec<Engine> {
    vec![
        two_mutexes(&[b(BOTH), b(BOTH)]).nests().patient().deaths(1),
        permits(&[b(ONE), b(TWO)]).sections().deaths(1),
        permits(&[b(ONE), b(ONE), b(TWO)]).deaths(1),
        run_once(&[b(LOCK), b(LOCK), l(LOCK)]).stalls().deaths(1),
        permits(&[b(ONE), l(TWO), b(ONE)]).patient().deadlines().stalls(),
        permits(&[b(ONE), l(TWO), b(ONE)]).patient().deadlines().stalls().liveness(),
        read_write(&[b(READ), b(READ), b(WRITE)]).deaths(1),
        read_write(&[b(READ), l(READ), b(WRITE)]).stalls().deaths(1),
        read_write(&[b(READ), b(WRITE)]).slots().sections().tries().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE)]).slots().tries().deaths(1),
        permits(&[b(ONE), b(TWO)]).sections().adding().deaths(1),
        mutex_and_name(&[x(BOTH), b(BOTH), b(BOTH)]).nests().patient(),
        read_write_and_mutex(&[b(READ_AND_LOCK), b(READ_AND_LOCK), b(WRITE)]).nests().patient(),
        read_write(&[b(READ), b(READ), b(WRITE)]).modes().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE)]).slots().tries().liveness(),
        read_write(&[b(READ), l(READ), l(WRITE)]).stalls().short_turns().liveness(),
        read_write(&[b(READ), l(READ), l(WRITE)]).slots().stalls().short_turns().liveness(),
        read_write(&[b(READ), b(READ), b(WRITE)]).slices().liveness(),
        read_write(&[l(READ), l(READ), b(WRITE)]).stalls().short_turns().liveness(),
        read_write(&[b(WRITE), b(WRITE), l(READ)]).short_turns().liveness(),
        read_write(&[l(READ), b(READ), b(WRITE)]).slices().stalls(),
        read_write(&[l(READ), b(WRITE), l(WRITE)]).stalls().deaths(1),
        read_write(&[b(READ), b(READ), b(WRITE), l(WRITE)]).stalls(),
        barging_permits(&[b(ONE), b(TWO), l(ONE)]).stalls().deaths(1),
        barging_permits(&[b(ONE), l(TWO), l(ONE)]).stalls().deaths(1),
        barging_permits(&[b(ONE), b(TWO), b(ONE)]).liveness(),
        barging_permits(&[b(ONE), l(TWO), b(ONE)]).stalls().short_turns().liveness(),
        barging_permit(&[b(ONE), l(ONE_OR_TWO), l(ONE)]).stalls(),
    ]
}

/// Returns what the other design of the register does not promise: a reader that ended in doubt stays in for ever.
fn doubt() -> Engine {
    read_write(&[b(READ), b(WRITE)]).deaths(1).liveness()
}

pub fn suite() -> Suite {
    let with = |fault, scenario| Engine { fault, ..scenario };
    Suite::new("", quick_scenarios(), full_scenarios(), Fault::ALL, |_| hunting_grounds(), with)
        .must_fail("DoubtBlocksWriters", with(None, doubt()))
}
