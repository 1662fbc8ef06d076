//! What a word says and how it changes: pure state machines, a file each, that name no queue, no thread and no clock.
//!
//! To add one: a file with a type for its state and the transitions of [`Word`], an arm for it there, and scenarios and
//! mutants of its own.

mod mutex;

pub use mutex::Mutex;

/// An agent's id. Ids start at 1.
pub type Id = u8;

/// No agent: the owner of a free word.
pub const NOBODY: Id = 0;
