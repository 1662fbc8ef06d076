//! The search for cycles of threads that are blocked without a timeout, read by read, beside threads that go on.
//!
//! Each hop is read under its own lock, so that the whole is no snapshot. It is walked twice: a thread whose wait is the
//! same both times was blocked all the time in between. Words are mutexes; how they are handed over is modelled elsewhere:
//! here a free one goes to anybody who asks, or is blocked for it.

mod protocol;
mod state;
pub mod suite;
