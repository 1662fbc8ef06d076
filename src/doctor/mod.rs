//! The lock doctor's memory, one for the process: call sites, locks, the order in which they were held, waits, and what came
//! of them. Each thread's JS tells it what happens there (`lib/doctor`); a thread of its own looks for what is stuck, and can
//! print the report while all others are blocked. Nothing here is touched unless the doctor was started.

mod columns;
mod contention;
mod deadlock;
mod forgetting;
mod holds;
mod json;
mod names;
mod order;
mod outside;
mod report;
mod signals;
mod state;
mod stuck;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod waits;
mod watchdog;

pub use holds::{HoldTable, SLOT_LENGTH, SLOTS, read_together};
pub use names::{Lock, MAIN, text_of};
pub use order::{Edge, LockOrder};
pub use state::{Doctor, Options};
pub use stuck::{look, permit_holders};
pub use waits::{Outside, TrackedWait};
pub use watchdog::watch;
