//! The real engine under random schedules: shuttle runs programs that are drawn at random, one thread at a time, and draws who runs
//! next at each step. Time is virtual, and drawn too.
//!
//! `cargo schedules`; `SABLOCK_SCHEDULES` says how many, `SABLOCK_SEED` with which seed they begin. Of a schedule that failed,
//! shuttle prints the seed: `SABLOCK_SEED=... SABLOCK_SCHEDULES=1 SABLOCK_TRACE=1` runs it again.
//!
//! A lost wake-up is a deadlock, which shuttle reports; two holders at once fail in [`room::Room`]; what is left fails in
//! the engine's audit. A kind of event that no schedule reached fails as well: what never came about was not tested.
#![cfg(shuttle)]

#[path = "schedules/actor.rs"]
mod actor;
#[path = "schedules/clock.rs"]
mod clock;
mod common;
#[path = "schedules/looping.rs"]
mod looping;
#[path = "schedules/meeting.rs"]
mod meeting;
#[path = "schedules/outside.rs"]
mod outside;
#[path = "schedules/reached.rs"]
mod reached;
#[path = "schedules/room.rs"]
mod room;
#[path = "schedules/world.rs"]
mod world;

use std::num::NonZero;
use std::sync::{Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use sablock::agents::Agent;
use sablock::sync::virtual_time;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};

use world::World;

/// The number of schedules that have one seed of this run.
const OF_ONE_SEED: u64 = 500;
/// More steps than any program takes that does not livelock.
const MOST_STEPS: usize = 200_000;
/// The stack of each thread, in bytes.
const STACK: usize = 256 * 1024;
/// The number of schedules that come to everything.
const ENOUGH: u64 = 5_000;

/// A number below `limit`, of the schedule's own.
fn below(limit: usize) -> usize {
    thread_rng().gen_range(0..limit)
}

/// True once in so many times.
fn one_in(times: usize) -> bool {
    below(times) == 0
}

/// Prints a step of a schedule that is run again.
fn trace(agent: &Agent, step: impl FnOnce() -> String) {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    if *IS_ON.get_or_init(|| std::env::var_os("SABLOCK_TRACE").is_some()) {
        println!("{} {}", agent.id, step());
    }
}

/// Lets others run for a while.
fn dawdle(most: usize) {
    for _ in 0..below(most) {
        thread::yield_now();
    }
}

/// One program: some threads and event loops, one that brings what they wait for, and one that lets time pass.
fn program() {
    let world = Box::new(World::random());
    // SAFETY: the world stays until all threads are joined.
    let shared: &'static World = unsafe { &*std::ptr::from_ref(&*world) };
    let keeper = thread::spawn(move || {
        virtual_time::pass(|| {
            shared.clock.fire(shared.engine);
            dawdle(40);
        });
    });
    let actors = shared.actors.iter().enumerate().map(|(number, is_loop)| {
        thread::spawn(move || if *is_loop { looping::run(shared, number) } else { actor::run(shared, number) })
    });
    let actors: Vec<_> = actors.collect();
    let server = thread::spawn(move || shared.outside.serve());
    actor::deliver(shared);
    actors.into_iter().for_each(|actor| actor.join().unwrap());
    shared.outside.end(server.thread());
    server.join().unwrap();
    virtual_time::end();
    keeper.join().unwrap();
    world.expect_rest();
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn nothing_is_lost_whoever_runs_next() {
    let count = number("SABLOCK_SCHEDULES").unwrap_or(20_000);
    let first = number("SABLOCK_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::from(time.subsec_nanos()))
    });
    println!("{count} schedules from seed {first}");
    let of_one_seed = OF_ONE_SEED.min(count);
    let seeds = &Mutex::new(first..first + count.div_ceil(of_one_seed));
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(move || {
                let next = || seeds.lock().unwrap().next();
                while let Some(seed) = next() {
                    let scheduler = RandomScheduler::new_from_seed(seed, of_one_seed as usize);
                    Runner::new(scheduler, config()).run(program);
                }
            });
        }
    });
    reached::report(count >= ENOUGH);
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config
}
