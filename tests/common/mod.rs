//! Helpers that tests of the core have in common; each uses a part of them.
#![allow(dead_code)]

use std::io;
use std::sync::Arc;
use std::time::Instant;

use sablock::agents::Agent;
use sablock::engine::{
    Caller, Corrupt, Deadline, Engine, EventLoop, Failure, Hold, HoldOwner, Limit, Outcome, Reply, ReplyError, Request,
    Timers,
};
use sablock::memory::Place;
use sablock::primitives::mutex::MUTEX;
use sablock::sync::Mutex;

/// A thread whose end has begun: it is let in before its next slice could show that.
pub struct Ending;

impl Caller for Ending {
    fn pause(&mut self) -> bool {
        true
    }

    fn goes_on(&mut self) -> bool {
        false
    }
}

/// Blocks a thread until it has the mutex, and unlocks it.
pub trait Locks {
    fn engine(&self) -> &Engine;

    fn lock(
        &self,
        agent: &Arc<Agent>,
        place: Place,
        owner: HoldOwner,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Outcome, Failure> {
        self.engine().wait(agent, &MUTEX, place, Request::Hold(Hold::exclusive(owner)), limit, caller)
    }

    fn unlock(&self, agent: &Arc<Agent>, place: Place, owner: HoldOwner) -> Result<bool, Corrupt> {
        self.engine().release(agent, &MUTEX, place, Hold::exclusive(owner))
    }
}

impl Locks for Engine {
    fn engine(&self) -> &Engine {
        self
    }
}

/// Locks the mutex for an event loop, or queues for it.
pub trait LocksAsync {
    fn lock(&mut self, place: Place, owner: HoldOwner, limit: Limit) -> Result<Reply, ReplyError>;
}

impl LocksAsync for EventLoop<'_> {
    fn lock(&mut self, place: Place, owner: HoldOwner, limit: Limit) -> Result<Reply, ReplyError> {
        self.wait(&MUTEX, place, Request::Hold(Hold::exclusive(owner)), limit)
    }
}

/// A clock whose times come when the test says so.
#[derive(Default, Clone)]
pub struct ManualClock(Arc<Mutex<Times>>);

#[derive(Default)]
struct Times {
    leases: Vec<Lease>,
    deadlines: Vec<Deadline>,
}

/// A lease that was started.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub address: usize,
    pub generation: u64,
    pub until: Instant,
}

impl Timers for ManualClock {
    fn deadline(&self, deadline: Deadline, _: Instant) -> io::Result<()> {
        self.0.lock().deadlines.push(deadline);
        Ok(())
    }
    fn cancel(&self, serial: u64) {
        self.0.lock().deadlines.retain(|kept| kept.serial != serial);
    }
    fn lease(&self, address: usize, generation: u64, until: Instant) {
        self.0.lock().leases.push(Lease { address, generation, until });
    }
    #[cfg(feature = "audit")]
    fn kept(&self) -> Vec<Deadline> {
        self.0.lock().deadlines.clone()
    }
}

impl ManualClock {
    /// Leases that were started since this was called last.
    pub fn take_leases(&self) -> Vec<Lease> {
        std::mem::take(&mut self.0.lock().leases)
    }

    /// All leases that were started are over; returns them.
    pub fn end_leases(&self, engine: &Engine) -> Vec<Lease> {
        let leases = self.take_leases();
        for lease in &leases {
            engine.end_lease(lease.address, lease.generation);
        }
        leases
    }

    /// Returns the number of deadlines that are kept.
    pub fn deadlines(&self) -> usize {
        self.0.lock().deadlines.len()
    }

    /// The deadlines that are kept, from now on no more.
    pub fn take_deadlines(&self) -> Vec<Deadline> {
        std::mem::take(&mut self.0.lock().deadlines)
    }

    /// All deadlines have come.
    pub fn expire(&self, engine: &Engine) {
        self.take_deadlines().iter().for_each(|deadline| engine.expire(deadline));
    }
}

#[cfg(loom)]
#[allow(unused_imports)]
pub use models::*;
#[cfg(any(loom, shuttle))]
#[allow(unused_imports)]
pub use turns::*;
#[cfg(not(any(loom, shuttle)))]
#[allow(unused_imports)]
pub use world::*;

#[cfg(loom)]
mod models {
    use std::sync::Arc;

    use loom::thread::{self, JoinHandle};

    /// Checks in all orders with so many preemptions beyond blocking; `LOOM_MAX_PREEMPTIONS` asks for more.
    pub fn model(bound: usize, check: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.max(Some(bound));
        builder.check(check);
    }

    pub fn spawn<W: 'static, T: 'static>(world: &Arc<W>, act: impl FnOnce(&W) -> T + 'static) -> JoinHandle<T> {
        let world = Arc::clone(world);
        thread::spawn(move || act(&world))
    }
}

#[cfg(any(loom, shuttle))]
mod turns {
    use std::sync::Arc;
    use std::time::Duration;

    use sablock::agents::Wake;
    use sablock::engine::{Client, Engine, EventLoop, Settled};
    use sablock::sync::{self, Thread};

    /// Makes a loop turn.
    struct LoopWaker(Arc<Thread>);

    impl Wake for LoopWaker {
        fn wake(&self) {
            self.0.unpark();
        }
    }

    /// A thread's event loop, and where it sleeps between turns.
    pub fn event_loop(engine: &Engine) -> (EventLoop<'_>, Arc<Thread>) {
        event_loop_with(engine, 0, ())
    }

    /// The same, of this thread, with those who are asked what becomes of its waits.
    pub fn event_loop_with<C: Client>(engine: &Engine, thread: u32, clients: C) -> (EventLoop<'_, C>, Arc<Thread>) {
        let agent = engine.agents.add(thread).unwrap();
        let parked = Arc::new(Thread::current());
        agent.set_waker(Some(Box::new(LoopWaker(Arc::clone(&parked)))));
        (EventLoop::with_clients(engine, agent, clients), parked)
    }

    /// Turns until a wait is settled.
    pub fn turn(waits: &mut EventLoop<'_>, parked: &Thread) -> Settled {
        loop {
            if let Some(settled) = waits.next_settled() {
                return settled;
            }
            parked.park_until(sync::now() + Duration::from_secs(1));
            waits.turned();
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
mod world {
    use std::ptr::NonNull;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::thread::{self, Scope};
    use std::time::{Duration, Instant};

    use sablock::agents::{Agent, Wake};
    use sablock::engine::{
        Engine, EventLoop, Hold, HoldOwner, Limit, Outcome, Patience, Primitive, Reply, Request, Settled, Slot,
    };
    use sablock::memory::Place;
    use sablock::primitives::mutex::MUTEX;
    use sablock::primitives::rwlock::{RWLOCK, Word};

    use super::{Locks as _, LocksAsync as _, ManualClock};

    /// Long enough for whatever is sure to come.
    pub const PROMPT: Duration = Duration::from_secs(if cfg!(mutant) { 5 } else { 20 });
    pub const ACQUIRED: Outcome = Outcome::GRANTED;

    pub const READ: Request = Request::Hold(Hold::shared(HoldOwner::Thread));
    pub const WRITE: Request = Request::Hold(Hold::exclusive(HoldOwner::Thread));

    /// An engine of its own with a place of two words, and words beside it.
    pub struct World {
        pub engine: Engine,
        pub clock: ManualClock,
        pub words: [AtomicU32; 2],
        pub others: [AtomicU32; 2],
    }

    #[cfg(feature = "audit")]
    impl Drop for World {
        /// Each test leaves queues and registers as they have to be.
        fn drop(&mut self) {
            if !thread::panicking() {
                assert_eq!(self.engine.audit(), Vec::<String>::new());
            }
        }
    }

    impl World {
        /// Sleepers are handed the word directly if `grants`, else never. They have no slices: who is not woken hangs, and
        /// nobody is away for a moment, in which it would not be counted on.
        pub fn new(grants: bool) -> Self {
            Self::with(Self::without_slices(grants))
        }

        /// Such a world, which hands nobody the word directly, and an agent that holds it.
        pub fn held() -> (Self, Arc<Agent>) {
            let world = Self::new(false);
            let me = world.agent(0);
            assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
            (world, me)
        }

        /// The patience of such a world.
        pub fn without_slices(grants: bool) -> Patience {
            Patience { slice: Duration::from_secs(3600), ..Self::patience(grants) }
        }

        /// Beside that, sleepers look around between two slices.
        pub fn with_slices(grants: bool) -> Self {
            Self::with(Self::patience(grants))
        }

        fn patience(grants: bool) -> Patience {
            let grant_after = if grants { Duration::ZERO } else { Duration::MAX };
            Patience { grant_after, grant_every: Duration::ZERO, ..Patience::default() }
        }

        pub fn with(patience: Patience) -> Self {
            let clock = ManualClock::default();
            let engine = Engine::new(4, 70_000, patience, Box::new(clock.clone()));
            Self { engine, clock, words: Default::default(), others: Default::default() }
        }

        pub fn place(&self) -> Place {
            // SAFETY: aligned atomics that outlive all waits, which end inside the test.
            unsafe { Place::new(NonNull::from(&self.words).cast(), 0) }
        }

        /// Another place.
        pub fn other(&self, index: usize) -> Place {
            // SAFETY: as in `place`.
            unsafe { Place::new(NonNull::from(&self.others[index]), 4 * (index + 1)) }
        }

        pub fn value(&self) -> u32 {
            self.words[0].load(Ordering::SeqCst)
        }

        pub fn agent(&self, thread: u32) -> Arc<Agent> {
            self.engine.agents.add(thread).unwrap()
        }

        pub fn event_loop(&self) -> EventLoop<'_> {
            EventLoop::new(&self.engine, self.agent(0))
        }

        pub fn lock(&self, agent: &Arc<Agent>, limit: Limit) -> Outcome {
            self.engine.lock(agent, self.place(), HoldOwner::Thread, limit, &mut || true).unwrap()
        }

        /// As JS locks a free word, of which the core sees nothing.
        pub fn lock_fast(&self, agent: &Arc<Agent>) {
            self.words[0].compare_exchange(0, agent.id, Ordering::SeqCst, Ordering::SeqCst).expect("a free word");
        }

        pub fn unlock(&self, agent: &Arc<Agent>) {
            self.engine.unlock(agent, self.place(), HoldOwner::Thread).unwrap();
        }

        /// Reads or writes under the readers-writer lock.
        pub fn enter(&self, agent: &Arc<Agent>, request: Request, limit: Limit) -> Outcome {
            self.engine.wait(agent, &RWLOCK, self.place(), request, limit, &mut || true).unwrap()
        }

        /// A thread blocks until it is in, and goes out.
        pub fn enter_once(&self, request: Request) {
            let agent = self.agent(0);
            assert_eq!(self.enter(&agent, request, Limit::after(PROMPT)), ACQUIRED);
            self.exit(&agent, request);
        }

        pub fn exit(&self, agent: &Arc<Agent>, request: Request) {
            self.engine.release(agent, &RWLOCK, self.place(), request.hold().unwrap()).unwrap();
        }

        /// Returns the word as that of the readers-writer lock.
        pub fn word(&self) -> Word {
            Word(self.value())
        }

        /// `lockAsync` of a word that is not free.
        pub fn queue(&self, waits: &mut EventLoop<'_>) -> u32 {
            pending(waits.lock(self.place(), HoldOwner::Thread, Limit::Endless).unwrap())
        }

        /// A loop that waits for it, and the token of that wait.
        pub fn queued(&self) -> (EventLoop<'_>, u32) {
            let mut waits = self.event_loop();
            let token = self.queue(&mut waits);
            (waits, token)
        }

        /// A thread blocks until it has the mutex, and unlocks it.
        pub fn hold_once(&self) {
            let agent = self.agent(0);
            assert_eq!(self.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
            self.unlock(&agent);
        }

        /// A loop that came and found the word held, so that the next release reserves it.
        pub fn claimed_in_vain(&self, holder: &Arc<Agent>) -> (EventLoop<'_>, u32) {
            let (mut waits, token) = self.queued();
            self.unlock(holder);
            assert_eq!(self.lock(holder, Limit::Once), ACQUIRED);
            assert_eq!(waits.next_settled(), None);
            (waits, token)
        }

        /// A wait at [`World::place`] that ended so.
        pub fn settled(&self, token: u32, outcome: Outcome) -> Option<Settled> {
            Some(Settled { token, place: self.place(), is_for_hold: true, outcome: Ok(outcome) })
        }

        /// Returns how long each waiter for the mutex has waited, in the order of the queue.
        pub fn ages(&self) -> Vec<Duration> {
            self.engine.inspect(&MUTEX, self.place()).waiters.into_iter().map(|waiter| waiter.waited).collect()
        }

        /// Three threads block for the mutex, each once the one before is queued, and hold it once.
        pub fn queue_three<'s>(&'s self, scope: &'s Scope<'s, '_>, holds: impl Fn(usize) + Copy + Send + 's) {
            for queued in 1..=3 {
                scope.spawn(move || {
                    let agent = self.agent(0);
                    assert_eq!(self.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
                    holds(queued);
                    self.unlock(&agent);
                });
                self.until_queued(queued);
            }
        }

        pub fn until_queued(&self, waiters: usize) {
            self.until("waiters", |world| world.ages().len() == waiters);
        }

        /// Until so many wait for this primitive.
        pub fn until_waiting(&self, primitive: &dyn Primitive, count: usize) {
            self.until("waiters", |world| world.engine.inspect(primitive, world.place()).waiters.len() == count);
        }

        pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
            let start = Instant::now();
            while !holds(self) {
                assert!(start.elapsed() < PROMPT, "never came: {what}; {:?}", self.engine.stats());
                thread::yield_now();
            }
        }
    }

    /// The token of a wait that has to be waited for.
    pub fn pending(reply: Reply) -> u32 {
        match reply {
            Reply::Pending { token, .. } => token,
            now => panic!("{now:?}"),
        }
    }

    struct CountsWakes(Arc<AtomicUsize>);

    impl Wake for CountsWakes {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How often the loop of this agent is woken from now on.
    pub fn count_wakes(agent: &Agent) -> Arc<AtomicUsize> {
        let wakes = Arc::<AtomicUsize>::default();
        agent.set_waker(Some(Box::new(CountsWakes(Arc::clone(&wakes)))));
        wakes
    }

    /// Queues a wait of this loop.
    pub fn pend(waits: &mut EventLoop<'_>, world: &World, primitive: &'static dyn Primitive, request: Request) -> u32 {
        pending(waits.wait(primitive, world.place(), request, Limit::Endless).unwrap())
    }

    /// A slot of the register of holds, in memory that outlives the world.
    pub fn slot(agent: &Arc<Agent>) -> (Slot, &'static [AtomicU32; 2]) {
        let memory: &'static [AtomicU32; 2] = Box::leak(Box::default());
        // SAFETY: aligned, zero, and never freed.
        (unsafe { Slot::new(agent.id, NonNull::from(memory)) }, memory)
    }
}
