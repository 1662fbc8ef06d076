//! Helpers of the tests of this module.

use std::time::Instant;

use super::names::LockId;
use super::waits::TrackedWait;
use crate::agents::ThreadId;

/// A thread that blocks alone for a lock, for ever.
pub fn wait(thread: ThreadId, lock: LockId, address: usize, since: Instant) -> TrackedWait {
    TrackedWait {
        thread,
        lock,
        address,
        site: 3,
        since,
        is_endless: true,
        is_blocking: true,
        is_exclusive: true,
        is_counted: true,
        awaiting: Vec::new(),
        asked: None,
        outside: None,
    }
}
