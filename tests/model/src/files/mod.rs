//! Locks of files, among processes: the order of one name, with processes that are stopped wherever they are.
//!
//! The kernel lets in whoever waits for a file first; whoever only tries may pass. Of time there is one thing here: the
//! whole second, at which those who would share and wait at a gate go in together; holds are shorter than a second.
//! [`state`]: who is where. [`protocol`]: what may happen, and what must hold.

mod fault;
mod protocol;
mod state;
pub mod suite;
