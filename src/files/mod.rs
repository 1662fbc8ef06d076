//! Locks of names among processes: the kernel keeps each as a lock of a file, and knows who lives. So the lock of a process
//! that is killed is free at once, and that of one that sleeps is kept.
//!
//! This module knows neither JS nor the engine: a request has a closure that gets the outcome. In its process the engine
//! orders the requests, and lets one exclusive request of a name, or several shared ones, come here at a time.
//!
//! A name has three files in its directory ([`LockName`]), none of which is ever removed:
//!
//! | file | locked | content |
//! |------|--------|---------|
//! | `.lock` | by the holders | none |
//! | `.info` | never | who held it exclusively last, and whether that ended well ([`record`]) |
//! | `.turn` | by the one who is next in line | none |
//!
//! **Order between processes.** The kernel lets the last holder of a file lock win again and again. So whoever must wait
//! first locks `.turn`, waits for `.lock` with it, and unlocks `.turn` once it is in: it is *next*. A newcomer that finds
//! `.turn` locked does not try `.lock`; it waits for its turn. Among those who wait for `.turn`, the kernel chooses: all are
//! woken, and none of them has just held the lock.
//! A process may be stopped while it is next. So whoever has waited for its turn for a while waits for `.lock` as well,
//! exclusively even if it wants to share: then it gets in when nobody else is in, and overtakes no writer that is next.
//!
//! **Threads.** A lock that is free is taken on the caller's own thread. A wait in the kernel cannot be cancelled, and takes
//! a thread: those of [`waiter`] are for nothing else, and are not those of libuv, whose small pool serves the file system.
//! A wait that is withdrawn leaves its thread there, which unlocks at once if it is granted and nobody wants it.
//!
//! Imports run [`waiter`], [`keeper`] -> [`names`] -> [`hold`] -> [`file`] -> [`directory`] -> [`record`] -> [`name`];
//! all may use `system`.

pub mod directory;
pub mod file;
pub mod hold;
mod keeper;
pub mod name;
pub mod names;
pub mod record;
mod system;
#[cfg(test)]
mod testing;
pub mod waiter;

pub use directory::{Directory, Reason, Refusal};
pub use file::{Failure, Mode};
pub use hold::{Hold, Released};
pub use name::{LockName, Part};
pub use names::{Name, Outcome};
pub use record::{Holder, Past};
pub use system::Identity;
pub use waiter::{Blocked, Wait};
