//! Agents: the JS threads of the process, from their first use of the package to their end.
//!
//! An agent has an id that is never given out again (the id in a lock word says who holds it, and whether he lives),
//! an inbox of notices for its event loop, and a note of what it is blocked on. This module knows nothing of queues.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::sync::{AtomicBool, Mutex, Ordering, RwLock};
use crate::word::OWNER;

/// An agent's id: above 2^16, so that another library's 0, 1, 2 in a word is told apart, and below 2^26.
pub type AgentId = u32;

/// JavaScript's name of a thread: `worker_threads.threadId`.
pub type ThreadId = u32;

/// A table that has emptied gives its memory back if it has room for more than this.
pub const SPARE: usize = 1024;

/// What an event loop is told, to be dealt with on its own thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The word at this address may be yours: come and claim it.
    Offer(usize),
    /// The deadline of a wait is over.
    Expired(WaitId),
    /// A wait was told of a notification.
    Told(WaitId),
}

/// Names one asynchronous wait of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitId {
    /// The wait's place in its thread's table; used again once the wait is settled.
    pub token: u32,
    /// Tells it from earlier waits in the same place.
    pub serial: u64,
}

/// What a blocked thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blockage {
    /// The address of the word.
    pub address: usize,
    /// Its byte offset in the buffer, for messages.
    pub byte_offset: usize,
    /// Whether the wait has no timeout.
    pub endless: bool,
    /// Tells this wait from every other in the process.
    pub serial: u64,
}

/// Makes an event loop turn, from any thread.
pub trait Wake: Send {
    /// Called at most once between two drains; must not block.
    fn wake(&self);
}

/// One JS thread.
pub struct Agent {
    /// The id in lock words.
    pub id: AgentId,
    /// The id in messages.
    pub thread: ThreadId,
    /// A drain of the inbox is on its way: nobody else need wake the loop.
    scheduled: AtomicBool,
    inbox: Mutex<Vec<Notice>>,
    /// Held across the call, so that a loop that ends is never woken afterwards.
    waker: Mutex<Option<Box<dyn Wake>>>,
    os_thread: Arc<OsThread>,
}

/// What several agents may share: none of them can run while one of them blocks.
struct OsThread {
    is_blocked: AtomicBool,
    blockage: Mutex<Option<Blockage>>,
}

impl OsThread {
    fn new() -> Arc<Self> {
        Arc::new(Self { is_blocked: AtomicBool::new(false), blockage: Mutex::new(None) })
    }
}

impl Agent {
    fn new(id: AgentId, thread: ThreadId, os_thread: Arc<OsThread>) -> Self {
        Self {
            id,
            thread,
            scheduled: AtomicBool::new(false),
            inbox: Mutex::new(Vec::new()),
            waker: Mutex::new(None),
            os_thread,
        }
    }

    /// Whether both run on one thread of the system.
    pub fn shares_thread_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.os_thread, &other.os_thread)
    }

    /// Says how the loop is woken; `None` when it ends.
    pub fn set_waker(&self, waker: Option<Box<dyn Wake>>) {
        let previous = std::mem::replace(&mut *self.waker.lock(), waker);
        drop(previous);
    }

    /// Leaves a notice for the loop and sees to it that it turns.
    pub fn notify(&self, notice: Notice) {
        if self.post(notice) {
            self.wake();
        }
    }

    /// Sees to it that the loop turns, after [`Agent::post`] has said that the caller must.
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.lock() {
            waker.wake();
        }
    }

    /// Leaves a notice for the next drain, whatever brings that about.
    pub fn leave_notice(&self, notice: Notice) {
        self.inbox.lock().push(notice);
    }

    /// Leaves a notice; true if no drain was on its way, so that the caller must bring one about.
    pub fn post(&self, notice: Notice) -> bool {
        self.leave_notice(notice);
        // AcqRel: pairs with the store in `drain`. Whoever sees `true` here left the notice before the drain takes the inbox.
        !self.scheduled.swap(true, Ordering::AcqRel)
    }

    /// Moves all notices into `to`. On the loop's own thread.
    pub fn drain(&self, to: &mut impl Extend<Notice>) {
        // First the flag, then the inbox: a notice that comes in between brings about another drain.
        self.scheduled.swap(false, Ordering::AcqRel);
        let mut inbox = self.inbox.lock();
        to.extend(inbox.drain(..));
        if inbox.capacity() > SPARE {
            *inbox = Vec::new();
        }
    }

    /// Whether the thread is blocked inside a `lock()` or a `wait()`; a hint, since it may change at once.
    pub fn is_blocked(&self) -> bool {
        // Relaxed: only decides whether a word is reserved for its loop; a wrong answer costs a lease.
        self.os_thread.is_blocked.load(Ordering::Relaxed)
    }

    /// What the thread is blocked on.
    pub fn blockage(&self) -> Option<Blockage> {
        *self.os_thread.blockage.lock()
    }

    /// Notes what the thread is blocked on from now; answers what stood there, to be put back
    /// (a debugger may run a second `lock()` while the first one pauses).
    pub fn set_blockage(&self, blockage: Option<Blockage>) -> Option<Blockage> {
        self.os_thread.is_blocked.store(blockage.is_some(), Ordering::Relaxed);
        std::mem::replace(&mut *self.os_thread.blockage.lock(), blockage)
    }
}

/// What an id in a word says of its agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Its thread runs.
    Living,
    /// Its thread has ended.
    Dead,
    /// No agent ever had this id.
    NeverIssued,
}

/// All agents of the process: who lives, and who ever lived.
pub struct Roster {
    first: AgentId,
    state: RwLock<RosterState>,
}

struct RosterState {
    living: FxHashMap<AgentId, Arc<Agent>>,
    /// The thread of each id ever given out, in order: four bytes for each thread of the process's life.
    threads: Vec<ThreadId>,
}

impl Roster {
    /// An empty roster whose first id will be `first`.
    pub fn new(first: AgentId) -> Self {
        assert!(first > 1 << 16 && first < OWNER, "ids start between 2^16 and 2^26");
        Self { first, state: RwLock::new(RosterState { living: FxHashMap::default(), threads: Vec::new() }) }
    }

    /// Takes a thread in. `None` when all ids below 2^26 were used, after fifty million threads at least.
    pub fn enter(&self, thread: ThreadId) -> Option<Arc<Agent>> {
        self.enter_on(thread, OsThread::new())
    }

    /// As [`Roster::enter`], for another JS environment of the thread that `neighbour` runs on.
    pub fn enter_beside(&self, thread: ThreadId, neighbour: &Agent) -> Option<Arc<Agent>> {
        self.enter_on(thread, Arc::clone(&neighbour.os_thread))
    }

    fn enter_on(&self, thread: ThreadId, os_thread: Arc<OsThread>) -> Option<Arc<Agent>> {
        let mut state = self.state.write();
        let id = self.first + u32::try_from(state.threads.len()).ok()?;
        if id > OWNER {
            return None;
        }
        state.threads.push(thread);
        let agent = Arc::new(Agent::new(id, thread, os_thread));
        state.living.insert(id, Arc::clone(&agent));
        Some(agent)
    }

    /// Marks an agent dead: from now on everybody who meets its id in a word frees that word.
    pub fn leave(&self, id: AgentId) {
        self.state.write().living.remove(&id);
    }

    /// Whether the agent lives.
    pub fn standing(&self, id: AgentId) -> Standing {
        let state = self.state.read();
        if state.living.contains_key(&id) {
            Standing::Living
        } else if self.index(id).is_some_and(|index| index < state.threads.len()) {
            Standing::Dead
        } else {
            Standing::NeverIssued
        }
    }

    /// The living agent of an id.
    pub fn get(&self, id: AgentId) -> Option<Arc<Agent>> {
        self.state.read().living.get(&id).cloned()
    }

    /// The thread that an id was given to.
    pub fn thread(&self, id: AgentId) -> Option<ThreadId> {
        self.state.read().threads.get(self.index(id)?).copied()
    }

    fn index(&self, id: AgentId) -> Option<usize> {
        id.checked_sub(self.first).map(|index| index as usize)
    }
}

/// Keeps deadlines and leases, and says when they are over; decides nothing.
pub trait Timers: Send + Sync {
    /// After `at`, the agent gets a [`Notice::Expired`] with `id`. Fails if nobody can be found to watch the clock.
    fn deadline(&self, agent: &Arc<Agent>, id: WaitId, at: Instant) -> std::io::Result<()>;
    /// The deadline of `id` is of no more interest.
    fn cancel(&self, id: WaitId);
    /// At `at`, the lease `generation` on the word at `address` is over.
    fn lease(&self, address: usize, generation: u64, at: Instant);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_unknown_then_living_then_dead_and_never_given_out_again() {
        let roster = Roster::new(70_000);
        assert_eq!(roster.standing(70_000), Standing::NeverIssued);
        let first = roster.enter(3).unwrap();
        assert_eq!((first.id, roster.standing(first.id)), (70_000, Standing::Living));
        roster.leave(first.id);
        assert_eq!(roster.standing(first.id), Standing::Dead);
        assert_eq!(roster.thread(first.id), Some(3));
        assert_eq!(roster.enter(4).unwrap().id, 70_001);
        assert_eq!(roster.standing(2), Standing::NeverIssued);
    }

    #[test]
    fn only_the_first_notice_since_a_drain_brings_one_about() {
        let agent = Agent::new(70_000, 0, OsThread::new());
        assert!(agent.post(Notice::Offer(8)));
        assert!(!agent.post(Notice::Offer(16)));
        let mut got = Vec::new();
        agent.drain(&mut got);
        assert_eq!(got, [Notice::Offer(8), Notice::Offer(16)]);
        assert!(agent.post(Notice::Offer(24)));
    }
}
