//! One mutex, its queue, and two to four threads, in the finest steps: fast paths, sections, offers, ends.
//!
//! - What there is: [`queue`], [`agent`], and [`state`], which holds them together with the word.
//! - What may happen: [`step`] names it, [`enabled`] says when, [`protocol`] and [`section`] do it; [`delivery`] is the way
//!   of an offer to a loop. `section` is the protocol proper, and reads like the library's own bucket-locked code.
//! - What must hold: [`safety`] in each state; [`fairness`] says who is sure to go on.
//! - What is checked: [`scenario`] and [`suite`]; [`fault`] is what must not pass.

mod agent;
mod delivery;
mod enabled;
mod fairness;
mod fault;
mod protocol;
mod queue;
mod safety;
mod scenario;
mod section;
mod setting;
mod show;
mod state;
mod step;
pub mod suite;
