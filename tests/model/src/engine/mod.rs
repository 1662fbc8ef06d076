//! One engine for many primitives, of which it knows nothing but [`crate::primitives`]: one or two words, one queue for
//! each, both orders, batches of grants, the register of holds, and ends of threads at any step.
//!
//! Coarser than [`crate::barging`] where that has it: no threads that are away, no way of an offer to its loop, no sleep
//! of a loop, no warnings.
//!
//! - [`state`], [`step`]: what there is, and what may happen. [`setting`]: one scenario, with at most one fault.
//! - [`fast`]: what JavaScript does by itself, with the register. [`section`]: the engine proper. [`change`]: downgrade, upgrade,
//!   and what is done. [`order`]: whose turn it is when a word has something to give. [`cycle`]: the search for deadlocks.
//! - [`enabled`], [`fairness`], [`safety`], [`suite`]: when, who is sure to go on, what must hold, and what is checked.

mod change;
mod cycle;
mod enabled;
mod fairness;
mod fast;
mod fault;
mod leave;
mod order;
mod protocol;
mod safety;
mod section;
mod setting;
mod state;
mod step;
pub mod suite;
