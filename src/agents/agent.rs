//! One agent: its id, the inbox of its event loop, and what its thread is blocked on.

use super::spare::SPARE;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// An agent's id: above 2^16, so that another library's 0, 1, 2 in a word is no agent, and below 2^26.
pub type AgentId = u32;

/// No id is larger: 26 bits, as many as a lock word has for it.
pub const LARGEST_ID: AgentId = (1 << 26) - 1;

/// JavaScript's name of a thread: `worker_threads.threadId`.
pub type ThreadId = u32;

/// The thread of the operating system that some agents share: one cannot run while another blocks.
pub type OsThread = u64;

/// News for an event loop, which deals with it on its own thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The primitive at this address may let a waiter of this loop in: claim it.
    Offer(usize),
    /// The wait with this token was settled by another thread.
    Settled(u32),
    /// For a client of the engine, from its part on another thread.
    Message(Message),
}

/// A message to a client on its own thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// The hold of this request was stolen.
    Stolen(RequestId),
    /// The hold of this request outside was lost.
    Lost(u64),
}

/// Names one request of a client, among those of its agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId {
    /// Its number, which is used again once it is over.
    pub number: u32,
    /// Tells it from earlier requests of that number.
    pub generation: u32,
}

/// The wait of a blocked thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blockage {
    /// The address of the primitive.
    pub address: usize,
    /// Its byte offset in the buffer, for messages.
    pub byte_offset: usize,
    /// Whether the wait is for a lock and has no timeout: only such a wait can be part of a deadlock.
    pub endless: bool,
    /// Tells this wait from every other in the process.
    pub serial: u64,
}

/// Makes an event loop turn, from any thread.
pub trait Wake: Send {
    /// Called at most once between two drains; must not block.
    fn wake(&self);
}

/// One JS environment: a thread's, mostly.
pub struct Agent {
    /// The id in lock words.
    pub id: AgentId,
    /// The id in messages.
    pub thread: ThreadId,
    /// Which thread of the operating system runs it.
    pub os_thread: OsThread,
    /// A drain of the inbox is due: nobody else need wake the loop.
    scheduled: AtomicBool,
    inbox: Mutex<Vec<Notice>>,
    /// Held across the call, so that a loop that ends is never woken afterwards.
    waker: Mutex<Option<Box<dyn Wake>>>,
    is_blocked: AtomicBool,
    blockage: Mutex<Option<Blockage>>,
}

impl Agent {
    pub(super) fn new(id: AgentId, thread: ThreadId, os_thread: OsThread) -> Self {
        Self {
            id,
            thread,
            os_thread,
            scheduled: AtomicBool::new(false),
            inbox: Mutex::new(Vec::new()),
            waker: Mutex::new(None),
            is_blocked: AtomicBool::new(false),
            blockage: Mutex::new(None),
        }
    }

    /// Sets how the loop is woken; `None` when it ends.
    pub fn set_waker(&self, waker: Option<Box<dyn Wake>>) {
        let previous = std::mem::replace(&mut *self.waker.lock(), waker);
        drop(previous);
    }

    /// Leaves a notice for the loop and makes it turn.
    pub fn notify(&self, notice: Notice) {
        if self.post(notice) {
            self.wake();
        }
    }

    /// Makes the loop turn, after [`Agent::post`] has returned that the caller must.
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.lock() {
            waker.wake();
        }
    }

    /// Leaves a notice for the next drain, whatever brings that about.
    pub fn leave_notice(&self, notice: Notice) {
        self.inbox.lock().push(notice);
    }

    /// Leaves a notice; true if no drain was due, so that the caller must wake the loop.
    pub fn post(&self, notice: Notice) -> bool {
        self.leave_notice(notice);
        // AcqRel: pairs with the swap in `drain`. Whoever sees `true` here left the notice before the drain takes the inbox.
        !self.scheduled.swap(true, Ordering::AcqRel)
    }

    /// Moves all notices into `to`. On the loop's own thread.
    pub fn drain(&self, to: &mut impl Extend<Notice>) {
        // First the flag, then the inbox: a notice that comes in between makes another drain due.
        if !fault!(ScheduledIsClearedLate) {
            self.scheduled.swap(false, Ordering::AcqRel);
        }
        let mut inbox = self.inbox.lock();
        if fault!(InboxDropsWhatIsMany) && inbox.capacity() > SPARE {
            inbox.clear();
        }
        to.extend(inbox.drain(..));
        if inbox.capacity() > SPARE {
            *inbox = Vec::new();
        }
        drop(inbox);
        if fault!(ScheduledIsClearedLate) {
            self.scheduled.swap(false, Ordering::AcqRel);
        }
    }

    /// Drops the notices that are not to be kept. On the loop's own thread.
    pub fn retain_notices(&self, is_kept: impl FnMut(&Notice) -> bool) {
        self.inbox.lock().retain(is_kept);
    }

    /// Whether a notice waits for the next drain.
    #[cfg(feature = "audit")]
    pub fn has_notice(&self, notice: Notice) -> bool {
        self.inbox.lock().contains(&notice)
    }

    /// Whether the thread is blocked inside this package; a hint, since it may change at once.
    pub fn is_blocked(&self) -> bool {
        // Relaxed: only decides whether a lock is reserved for its loop; a wrong value costs a lease.
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// The wait that the thread is blocked on.
    pub fn blockage(&self) -> Option<Blockage> {
        *self.blockage.lock()
    }

    /// Notes what the thread is blocked on from now; returns what it was blocked on before, to be put back
    /// (a debugger may run a second `lock()` while the first one pauses).
    pub fn set_blockage(&self, blockage: Option<Blockage>) -> Option<Blockage> {
        self.is_blocked.store(blockage.is_some(), Ordering::Relaxed);
        std::mem::replace(&mut *self.blockage.lock(), blockage)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn only_the_first_notice_since_a_drain_wakes_the_loop() {
        let agent = Agent::new(70_000, 0, 0);
        assert!(agent.post(Notice::Offer(8)));
        assert!(!agent.post(Notice::Offer(16)));
        let mut got = Vec::new();
        agent.drain(&mut got);
        assert_eq!(got, [Notice::Offer(8), Notice::Offer(16)]);
        assert!(agent.post(Notice::Offer(24)));
    }

    #[test]
    fn a_notice_wakes_the_loop_that_there_is() {
        struct Count(Arc<AtomicUsize>);
        impl Wake for Count {
            fn wake(&self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (agent, wakes) = (Agent::new(70_000, 0, 0), Arc::new(AtomicUsize::new(0)));
        agent.set_waker(Some(Box::new(Count(Arc::clone(&wakes)))));
        agent.notify(Notice::Offer(8));
        agent.notify(Notice::Offer(8));
        assert_eq!(wakes.load(Ordering::Relaxed), 1, "the second finds a drain due");
        agent.set_waker(None);
        agent.wake();
        assert_eq!((wakes.load(Ordering::Relaxed), Arc::strong_count(&wakes)), (1, 1));
    }

    #[test]
    fn a_drain_gives_back_the_room_of_many_notices_and_keeps_that_of_some() {
        let agent = Agent::new(70_000, 0, 0);
        for (room, kept) in [(8, 8), (SPARE, SPARE), (SPARE + 1, 0)] {
            *agent.inbox.lock() = Vec::with_capacity(room);
            agent.post(Notice::Offer(8));
            let mut got = Vec::new();
            agent.drain(&mut got);
            assert_eq!((got, agent.inbox.lock().capacity()), (vec![Notice::Offer(8)], kept), "{room}");
        }
    }

    #[test]
    fn it_is_blocked_while_it_is_noted_what_on() {
        let agent = Agent::new(70_000, 0, 0);
        let blockage = Some(Blockage { address: 8, byte_offset: 8, endless: true, serial: 1 });
        assert!(!agent.is_blocked());
        assert_eq!((agent.set_blockage(blockage), agent.is_blocked()), (None, true));
        assert_eq!((agent.set_blockage(None), agent.is_blocked()), (blockage, false));
    }
}
