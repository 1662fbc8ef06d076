//! The words and their changes: pure state machines, a file each, that name no queue, no thread and no clock.
//!
//! To add one: a file with a type for its state and the transitions of [`Word`], an arm for it there, and scenarios and
//! mutants of its own.

mod mutex;
mod once;
mod rwlock;
mod semaphore;
mod types;
mod word;

pub use mutex::Mutex;
pub use once::Once;
pub use rwlock::RwLock;
pub use semaphore::Semaphore;
pub use types::{Id, NOBODY, Request};
pub use word::Word;
