//! The engine: it lets threads and event loops wait for primitives, in a fair order, and lets them in. It knows no primitive.
//!
//! The design, from the words outwards:
//!
//! 1. JS takes and releases a free primitive by one compare-exchange. Only when that fails it comes here.
//! 2. A *section* locks the bucket of the primitive's address and sets W, which makes every fast path fail: the words are
//!    frozen. It asks the primitive what becomes of a request, and writes the words at its end.
//! 3. Who cannot get in is *queued*: a blocked thread with its parker, a promise in the group of its event loop.
//! 4. The thread that releases *hands off*: blocked threads are woken, or handed over to directly once they have aged; event loops
//!    are *offered* what is free and *claim* it on their own thread.
//! 5. A waiter whose wait another thread ends is *settled*: it leaves the queue at once, and its own thread *collects* how.
//!    Therefore a timeout, an abort, or the end of the thread finds out whether it comes too late, and what to pass on.
//! 6. A blocked thread sleeps in slices, between which it looks whether it is being terminated.
//! 7. When a thread ends, what it was settled with and never knew of passes on; what it holds goes to the next, marked.
//! 8. A wait for a lock outside of the process has no words: whoever keeps that lock settles it.
//!
//! Imports run `node` -> `clients` -> `primitives` -> `engine` -> `agents` -> `memory`, `sync`.

mod arena;
#[cfg(feature = "audit")]
mod audit;
mod block;
mod claim;
mod client;
#[cfg(not(loom))]
pub mod clock;
mod contents;
mod deadlock;
mod drain;
mod ended;
mod event_loop;
mod expiry;
mod group;
mod handoff;
mod hold;
mod holders;
mod inspect;
mod leave;
mod limit;
mod list;
mod listed;
mod notify;
mod parker;
mod passes;
mod patience;
mod primitive;
#[doc(hidden)]
pub mod queue;
mod register;
mod reply;
mod section;
mod settle;
mod slot;
mod spin;
mod stats;
mod table;
mod timers;
mod wait;
mod waiter;
mod wakes;

pub use arena::Arena;
pub use client::Client;
pub(crate) use contents::Contents;
pub use deadlock::Hop;
pub use event_loop::EventLoop;
pub use expiry::{Expiry, TakesBack};
pub(crate) use holders::Holder;
pub use inspect::{HoldView, LockView, WaiterView};
pub use limit::Limit;
pub use parker::Parker;
pub use patience::Patience;
pub use primitive::{
    About, Blockers, Change, Corrupt, Counts, Decision, Facts, Glance, Hold, HoldOwner, ListedHold, Mode, Order,
    Primitive, Request, Space, State,
};
pub use reply::{Reply, ReplyError, Settled};
pub use slot::Slot;
pub use stats::Stats;
pub use table::Engine;
pub use timers::{Deadline, Timers};
pub use wait::{Caller, Failure, Outcome};
