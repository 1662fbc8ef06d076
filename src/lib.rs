//! sablock's core: mutexes of four bytes in memory that JS threads share.
//!
//! A worker thread blocks in `lock()`, an event loop awaits `lockAsync()`; both wait in one queue for one 32-bit word.
//!
//! What holds, always: exclusion and visibility; a free word with waiters has somebody on his way to it; a busy event
//! loop holds nobody back; nobody starves; threads may end anywhere; a blocked thread can be interrupted.
//!
//! Imports run one way: `node` -> [`mutex`], [`event_loop`] -> [`lot`] -> [`agent`], [`parker`] -> [`word`], `sync`.
//! Only `node` knows Node-API; the rest is built and tested without it (`--no-default-features`).

pub mod agent;
pub mod blocking;
#[cfg(not(loom))]
pub mod clock;
pub mod condition;
pub mod deadlock;
pub mod event_loop;
pub mod futex;
pub mod holds;
pub mod location;
pub mod lot;
pub mod mutex;
#[cfg(all(feature = "node", not(loom), not(test)))]
mod node;
pub mod parker;
pub mod shared_word;
mod spin;
pub mod sync;
pub mod word;
