//! Locks that have names: one name, whose entry comes and goes, and threads that ask for it, share it, steal it, and end.
//!
//! A section's decision is one step, since names have no fast paths; finding the entry, asking, and giving it up are steps
//! of their own. [`state`]: entries, threads. [`protocol`]: what may happen. [`safety`]: what must hold.

mod fault;
mod protocol;
mod safety;
mod setting;
mod state;
pub mod suite;
