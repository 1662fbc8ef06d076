//! Wait and notify, and conditions: exactly those notified wake, first in line; a waiter whose thread ends before its code
//! knows of its notification passes it on, to the next who stood in the line when it was given.
//!
//! [`line`] is the line; [`state`] and [`protocol`] are the threads around it, which
//! wait a bounded number of times; [`safety`] judges by the whole history.

mod fault;
mod line;
mod protocol;
mod safety;
mod setting;
mod state;
pub mod suite;
