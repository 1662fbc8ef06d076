//! The primitives: each a table of transitions on its words, which the engine drives. The only place that names bits.

pub mod barrier;
pub mod event;
pub mod exchanger;
pub mod futex;
pub mod latch;
pub mod mutex;
pub mod named;
pub mod once;
pub mod rwlock;
pub mod semaphore;
mod word;
