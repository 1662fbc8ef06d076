//! sablock's core: locks in memory that JS threads share.
//!
//! A worker thread blocks, an event loop awaits; both wait in one fair queue.
//!
//! Always true: exclusion and visibility; a free lock with waiters has somebody who will come for it; a busy event
//! loop holds nobody up; nobody starves; threads may end anywhere; a blocked thread can be interrupted.
//!
//! Imports run one way: `node` -> [`clients`] -> [`primitives`] -> [`engine`] -> [`agents`] -> [`memory`], [`sync`]; [`clients`] ->
//! [`desk`], [`files`].
//! Only `node` knows Node-API; the rest is built and tested without it (`--no-default-features`).

#[macro_use]
mod fault;

pub mod agents;
pub mod clients;
pub mod desk;
#[cfg(not(loom))]
pub mod doctor;
pub mod engine;
pub mod fence;
pub mod files;
pub mod memory;
#[cfg(all(feature = "node", not(loom), not(test)))]
mod node;
pub mod primitives;
pub mod sync;
