//! An exchanger: two that meet go on with each other's values, whoever gives up or ends.
//!
//! There are no fast paths, so what a section decides is one step. [`protocol`]: what may happen, and what must hold.

mod fault;
mod protocol;
pub mod suite;
