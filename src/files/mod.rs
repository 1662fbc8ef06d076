//! Locks of names among processes: the kernel keeps each as a lock of a file, and knows who lives. So the lock of a process
//! that is killed is free at once, and that of one that sleeps is kept.
//!
//! This module knows neither JS nor the engine: a request has a closure that gets the outcome. In its process the engine
//! orders the requests, and lets one exclusive request of a name, or several shared ones, come here at a time.
//!
//! A name has up to four files in its directory ([`LockName`]), none of which is ever removed:
//!
//! | file | locked | content |
//! |------|--------|---------|
//! | `.lock` | by the holders | none |
//! | `.info` | never | who held it exclusively last, and whether that ended well ([`record`]) |
//! | `.turn` | by the one who is next in line | none |
//! | `.gate` | by those who wait to hold the name alone, together | none |
//!
//! **Order between processes.** The kernel lets the last holder of a file lock win again and again. So whoever must wait
//! first locks `.turn`, waits for `.lock` with it, and unlocks `.turn` once it is in: it is *next*. A newcomer that finds
//! `.turn` locked does not try `.lock`; it waits for its turn. Among those who wait for `.turn`, the kernel chooses: all are
//! woken, and none of them has just held the lock.
//! A process may be stopped while it is next. So whoever has waited for its turn for a while waits for `.lock` as well,
//! without a turn. There one who shares passes those who wait for others to leave, and so it first looks at `.gate`: while that
//! is closed it stays away, until the next whole second of the clock at the latest. Then all who have waited there go in
//! together, and since holds are shorter than the next second, everybody's turn comes. `tests/model/src/files` is the model of this.
//!
//! **Threads.** A lock that is free is taken on the caller's own thread. A wait in the kernel takes a thread: that of the
//! caller, if it blocks, for a while; else those of [`waiter`], which are for nothing else, and are not those of libuv, whose
//! small pool serves the file system. A wait that is withdrawn ends in the kernel, too ([`interrupt`]); where that is impossible
//! its thread stays there, and unlocks at once if it is granted and nobody wants it.
//!
//! Imports run [`waiter`] -> [`names`] -> `threads`, [`line`] -> `keeper`, [`hold`] -> [`file`] -> `interrupt`, `guard` -> [`directory`] -> [`record`] -> [`name`];
//! `guard` -> `keeper` -> `interrupt`; [`reader`] -> [`directory`]; [`hold`] -> [`fence`]; all may use `system`.

#[cfg(feature = "audit")]
pub mod audit;
pub mod directory;
pub mod file;
mod guard;
pub mod hold;
mod interrupt;
mod keeper;
mod line;
pub mod name;
pub mod names;
pub mod reader;
pub mod record;
mod system;
#[cfg(test)]
pub(crate) mod testing;
mod threads;
pub mod waiter;

pub use directory::{Directory, Reason, Refusal};
pub use file::{FileFailure, LockMode};
pub use hold::{Asker, FileHold, Released};
pub use interrupt::Left;
pub use line::FileOutcome;
pub use name::{FileRole, LockName};
pub use names::NamedFile;
pub use record::{Past, RecordedHolder};
pub use system::Identity;
pub use waiter::FileWait;
