//! The background waiter: one thread with tokio's timer wheel, which keeps the deadlines of pending promises and the
//! leases of reserved words. It decides nothing: when a time is over it tells the engine, which ends the wait, or the lease,
//! whatever the event loop concerned is doing.
//!
//! The thread starts when the first time is to be kept and ends when there has been none for a while.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio_util::time::{DelayQueue, delay_queue::Key};

use super::table::Engine;
use super::timers::{Deadline, Timers};
use crate::agents::{SPARE, is_sparse};

/// With nothing to keep for this long, the thread ends; and while it keeps times it wakes at least this often, so that what
/// was cancelled is soon forgotten.
const IDLE: Duration = Duration::from_secs(1);
/// tokio's wheel holds about two years; what is further away is looked at again after this time.
const HORIZON: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Commands that are not urgent wait up to this number.
const MOST_COMMANDS: usize = 4096;

/// The background waiter of one engine.
pub struct Clock {
    engine: fn() -> &'static Engine,
    shared: Arc<Shared>,
}

/// The place where commands are left for the thread.
#[derive(Default)]
struct Shared {
    commands: Mutex<Commands>,
    wake_up: Notify,
    /// By serial: the deadlines of which nobody has said that they are over.
    #[cfg(feature = "audit")]
    kept: Mutex<FxHashMap<u64, Deadline>>,
}

#[derive(Default)]
struct Commands {
    is_running: bool,
    /// The thread has been woken and not looked yet.
    is_woken: bool,
    /// When the thread will look at the commands by itself; `None`: not before it is woken.
    wakes_at: Option<Instant>,
    queue: Vec<Command>,
}

/// Keep a time, or forget it. The serial names it.
enum Command {
    Keep(u64, Time),
    Forget(u64),
}

struct Time {
    at: Instant,
    of: TimeOf,
}

enum TimeOf {
    Deadline(Deadline),
    Lease { address: usize, generation: u64 },
}

impl Clock {
    /// A clock for the engine that `engine` returns; its thread does not run yet.
    pub fn new(engine: fn() -> &'static Engine) -> Self {
        Self { engine, shared: Arc::default() }
    }
}

impl Timers for Clock {
    fn deadline(&self, deadline: Deadline, at: Instant) -> io::Result<()> {
        // First, since its time may be over at once.
        #[cfg(feature = "audit")]
        self.shared.kept.lock().insert(deadline.serial, deadline);
        let kept = self.keep(deadline.serial, Time { at, of: TimeOf::Deadline(deadline) });
        #[cfg(feature = "audit")]
        if kept.is_err() {
            self.shared.kept.lock().remove(&deadline.serial);
        }
        kept
    }

    fn cancel(&self, serial: u64) {
        #[cfg(feature = "audit")]
        self.shared.kept.lock().remove(&serial);
        self.shared.leave(&mut self.shared.commands.lock(), Command::Forget(serial));
    }

    fn lease(&self, address: usize, generation: u64, at: Instant) {
        let of = TimeOf::Lease { address, generation };
        if self.keep(generation, Time { at, of }).is_err() {
            // Without a clock there are no leases: the lock goes to whoever comes first.
            (self.engine)().end_lease(address, generation);
        }
    }

    #[cfg(feature = "audit")]
    fn kept(&self) -> Vec<Deadline> {
        self.shared.kept.lock().values().copied().collect()
    }
}

impl Clock {
    fn keep(&self, serial: u64, time: Time) -> io::Result<()> {
        let mut commands = self.shared.commands.lock();
        if !commands.is_running {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            let (engine, shared) = (self.engine, Arc::clone(&self.shared));
            let run = move || runtime.block_on(keep_time(engine(), &shared));
            std::thread::Builder::new().name("sablock-clock".into()).spawn(run)?;
            commands.is_running = true;
        }
        self.shared.leave(&mut commands, Command::Keep(serial, time));
        Ok(())
    }
}

impl Shared {
    /// Leaves a command; wakes the thread if it cannot wait until that wakes by itself.
    fn leave(&self, commands: &mut Commands, command: Command) {
        let is_urgent = match &command {
            Command::Keep(_, time) => commands.wakes_at.is_none_or(|at| time.at < at && !fault!(ShorterDeadlineWaits)),
            Command::Forget(_) => false,
        };
        commands.queue.push(command);
        if (is_urgent || commands.queue.len() >= MOST_COMMANDS) && !commands.is_woken {
            commands.is_woken = true;
            self.wake_up.notify_one();
        }
    }

    /// Takes the commands; notes when the thread will look again by itself.
    fn take(&self, times: &mut Times) {
        let mut commands = self.commands.lock();
        for command in commands.queue.drain(..) {
            times.follow(command);
        }
        commands.is_woken = false;
        if commands.queue.capacity() > SPARE {
            commands.queue = Vec::new();
        }
        times.shrink();
        commands.wakes_at = times.earliest();
    }

    /// Stops the thread, unless a command has come in.
    fn retire(&self) -> bool {
        let mut commands = self.commands.lock();
        commands.is_running = !commands.queue.is_empty() && !fault!(ClockRetiresOnCommands);
        !commands.is_running
    }
}

async fn keep_time(engine: &Engine, shared: &Shared) {
    let mut times = Times::default();
    loop {
        shared.take(&mut times);
        if times.wheel.is_empty() {
            let woken = tokio::time::timeout(IDLE, shared.wake_up.notified()).await;
            if woken.is_err() && shared.retire() {
                return;
            }
        } else {
            tokio::select! {
                () = shared.wake_up.notified() => {}
                () = tokio::time::sleep(IDLE) => {}
                time = times.next() => {
                    #[cfg(feature = "audit")]
                    shared.kept.lock().remove(&time.0);
                    times.end(time, engine);
                }
            }
        }
    }
}

/// The times that are kept.
#[derive(Default)]
struct Times {
    wheel: DelayQueue<(u64, Time)>,
    keys: FxHashMap<u64, Key>,
}

impl Times {
    fn follow(&mut self, command: Command) {
        match command {
            Command::Keep(serial, time) => {
                let at = time.at.min(Instant::now() + HORIZON);
                let key = self.wheel.insert_at((serial, time), at.into());
                self.keys.insert(serial, key);
            }
            Command::Forget(serial) => {
                if let Some(key) = self.keys.remove(&serial) {
                    self.wheel.remove(&key);
                }
            }
        }
    }

    fn shrink(&mut self) {
        if is_sparse(self.keys.len(), self.keys.capacity()) {
            self.keys.shrink_to(2 * self.keys.len());
            self.wheel.compact();
        }
    }

    fn earliest(&self) -> Option<Instant> {
        self.wheel.peek().map(|key| self.wheel.deadline(&key).into_std())
    }

    /// The next time that is over.
    async fn next(&mut self) -> (u64, Time) {
        match poll_fn(|context| self.wheel.poll_expired(context)).await {
            Some(expired) => expired.into_inner(),
            None => std::future::pending().await,
        }
    }

    fn end(&mut self, (serial, time): (u64, Time), engine: &Engine) {
        self.keys.remove(&serial);
        if time.at > Instant::now() {
            // Beyond the horizon, or the wheel was early by its resolution of a millisecond.
            self.follow(Command::Keep(serial, time));
            return;
        }
        match time.of {
            TimeOf::Deadline(deadline) => engine.expire(&deadline),
            TimeOf::Lease { address, generation } => engine.end_lease(address, generation),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::engine::Patience;
    use crate::engine::timers::NoClock;

    /// The thread's side and the others', step by step and without a thread.
    struct World {
        shared: Shared,
        times: Times,
    }

    impl World {
        fn new() -> Self {
            Self { shared: Shared::default(), times: Times::default() }
        }

        fn keep(&self, serial: u64, after: Duration) {
            let of = TimeOf::Lease { address: 8, generation: serial };
            let time = Time { at: Instant::now() + after, of };
            self.shared.leave(&mut self.shared.commands.lock(), Command::Keep(serial, time));
        }

        fn forget(&self, serial: u64) {
            self.shared.leave(&mut self.shared.commands.lock(), Command::Forget(serial));
        }

        /// Whether the thread was woken since it, or this, looked last.
        fn is_woken(&self) -> bool {
            let is_noted = self.shared.commands.lock().is_woken;
            let notified = pin!(self.shared.wake_up.notified());
            assert_eq!(notified.poll(&mut Context::from_waker(Waker::noop())).is_ready(), is_noted);
            is_noted
        }

        fn take(&mut self) {
            self.shared.take(&mut self.times);
        }
    }

    /// The wheel needs a runtime; nothing is awaited.
    fn on_a_runtime(act: impl FnOnce()) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async { act() });
    }

    const SOON: Duration = Duration::from_secs(60);
    const LATE: Duration = Duration::from_secs(3600);

    #[test]
    fn a_deadline_that_is_sooner_than_all_others_wakes_the_thread_and_a_later_one_does_not() {
        on_a_runtime(|| {
            let mut world = World::new();
            world.keep(1, LATE);
            assert!(world.is_woken(), "the first");
            world.take();
            assert!(!world.is_woken());
            world.keep(2, LATE * 2);
            assert!(!world.is_woken(), "the thread wakes before that anyway");
            world.keep(3, SOON);
            assert!(world.is_woken());
            world.take();
            assert!(world.times.earliest().unwrap() < Instant::now() + LATE);
        });
    }

    #[test]
    fn a_deadline_that_was_forgotten_is_no_time_at_which_the_thread_looks() {
        on_a_runtime(|| {
            let mut world = World::new();
            world.keep(1, SOON);
            world.take();
            world.forget(1);
            world.take();
            world.keep(2, LATE);
            assert!(world.is_woken(), "else nobody looks before the time of the first");
        });
    }

    #[test]
    fn many_commands_wake_the_thread_though_none_is_urgent() {
        on_a_runtime(|| {
            let mut world = World::new();
            world.keep(1, LATE);
            assert!(world.is_woken());
            world.take();
            for forgotten in 1..MOST_COMMANDS as u64 {
                world.forget(forgotten + 1);
                assert!(!world.is_woken());
            }
            world.forget(1);
            assert!(world.is_woken());
        });
    }

    #[test]
    fn a_time_that_the_wheel_ends_early_is_kept_on() {
        on_a_runtime(|| {
            let engine = Engine::new(1, 70_000, Patience::default(), Box::new(NoClock));
            let mut world = World::new();
            let time = |at| Time { at, of: TimeOf::Lease { address: 8, generation: 1 } };
            world.times.end((1, time(Instant::now() + LATE)), &engine);
            assert!(world.times.earliest().is_some_and(|at| at > Instant::now() + SOON));
            world.forget(1);
            world.take();
            world.times.end((1, time(Instant::now())), &engine);
            assert!(world.times.earliest().is_none());
        });
    }

    #[test]
    fn the_thread_does_not_end_while_a_command_is_left_for_it() {
        on_a_runtime(|| {
            let mut world = World::new();
            world.keep(1, SOON);
            assert!(!world.shared.retire());
            world.take();
            world.forget(1);
            assert!(!world.shared.retire());
            world.take();
            assert!(world.times.wheel.is_empty());
            assert!(world.shared.retire());
        });
    }

    #[test]
    fn memory_follows_the_number_of_times_that_are_kept() {
        const MANY: u64 = 5_000;
        on_a_runtime(|| {
            let mut world = World::new();
            (0..MANY).for_each(|serial| world.keep(serial, LATE));
            world.take();
            (1..MANY).for_each(|serial| world.forget(serial));
            world.take();
            assert_eq!(world.times.keys.len(), 1);
            let commands = world.shared.commands.lock().queue.capacity();
            let room = world.times.wheel.capacity().max(world.times.keys.capacity()).max(commands);
            assert!(room <= SPARE, "room for {room}");
            world.forget(0);
            world.take();
            assert!(world.times.wheel.is_empty() && world.times.earliest().is_none());
        });
    }
}
