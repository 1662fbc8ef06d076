//! The Node-API binding: the only place that names napi. It converts, calls the core, and converts back;
//! arguments are checked and errors are made in `lib/`, where `lib/load/binary.js` alone loads it.
//!
//! Free functions with plain numbers, because a call costs what its conversions cost.

mod anchors;
mod ask;
#[cfg(feature = "audit")]
mod audit;
mod beside;
mod blocking_call;
mod condition;
mod copies;
mod desk;
mod desks;
mod directories;
mod doctor;
mod files;
mod futex;
mod handles;
mod held;
mod hold;
mod inspection;
mod leases;
mod lent;
mod lock_all;
mod named;
mod outer;
mod process;
mod record;
mod status;
mod thread;
mod views;
mod wake;

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use crate::primitives;
use thread::JsThread;

/// In a lock word: the bits that name the holder, an agent's id; 0: none.
#[napi]
pub const OWNER: u32 = primitives::mutex::OWNER;
/// In a lock word: a guard owns the hold.
#[napi]
pub const GUARDED: u32 = primitives::mutex::GUARDED;
/// In a lock word: a holder's thread ended inside.
#[napi]
pub const ABANDONED: u32 = primitives::mutex::ABANDONED;

/// In an RwLock's word: readers are in, and the low bits are their number.
#[napi]
pub const SHARED: u32 = primitives::rwlock::SHARED;
/// In an RwLock's word: the bits of the number of readers.
#[napi]
pub const READERS: u32 = primitives::rwlock::READERS;
/// In a semaphore's word: there are waiters.
#[napi]
pub const PERMITS_WAITING: u32 = primitives::semaphore::WAITING;
/// In a semaphore's word: the bits of the number of permits taken, in two's complement.
#[napi]
pub const TAKEN: u32 = primitives::semaphore::TAKEN;
/// No semaphore has more.
#[napi]
pub const MAX_PERMITS: u32 = primitives::semaphore::MAX_PERMITS;
/// In the words of other primitives: there are waiters.
#[napi]
pub const WAITING: u32 = primitives::mutex::WAITING;
/// In an event's word: it is set.
#[napi]
pub const SET: u32 = primitives::event::SET;
/// No latch's count is larger.
#[napi]
pub const MAX_COUNT: u32 = primitives::latch::MAX_COUNT;
/// In the word of a once: it is done.
#[napi]
pub const DONE: u32 = primitives::once::DONE;
/// In a barrier's word: it is broken.
#[napi]
pub const BROKEN: u32 = primitives::barrier::BROKEN;
/// In a barrier's word: the bits of the number of those who wait.
#[napi]
pub const ARRIVED: u32 = primitives::barrier::ARRIVED;
/// No barrier has more parties.
#[napi]
pub const MAX_PARTIES: u32 = primitives::barrier::MAX_PARTIES;

/// The protocol that two copies of the package must have in common to work together.
#[napi]
pub const PROTOCOL: u32 = copies::PROTOCOL;

/// The version of the package: its JavaScript works with a binary of its own version only.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Another copy of this addon in the process.
#[napi(object)]
pub struct OtherCopy {
    /// Its file.
    pub path: String,
    /// Its `PROTOCOL`.
    pub protocol: u32,
}

/// The copy that was loaded first, with which all others must work; `null` if it is this one.
#[napi(catch_unwind)]
pub fn first_copy() -> Option<OtherCopy> {
    copies::pin();
    let first = copies::first().filter(|copy| !copy.is_this)?;
    Some(OtherCopy { path: first.path.to_string_lossy().into_owned(), protocol: first.protocol })
}

/// Takes this environment in (see `JsThread::attach`): returns the state object that is to be used, of this call or of an earlier
/// one. `environment` is an object or function that the environment has one of, whatever loads the package there.
#[napi(
    catch_unwind,
    ts_args_type = "threadId: number, environment: object, thread: object, record: Float64Array, drain: () => void, pause: () => void, look: () => void"
)]
#[allow(clippy::too_many_arguments, reason = "what there is one of for each thread")]
pub fn attach<'env>(
    env: Env,
    thread_id: u32,
    environment: Unknown<'env>,
    thread: Object<'env>,
    record: Unknown<'env>,
    drain: Unknown<'env>,
    pause: Unknown<'env>,
    look: Unknown<'env>,
) -> Result<Unknown<'env>> {
    JsThread::attach(env, thread_id, environment, thread, record, drain, pause, look)
}

/// Whether pending waits keep the event loop alive from now on.
#[napi(catch_unwind)]
pub fn keep_alive(env: Env, on: bool) -> Result<()> {
    JsThread::with(env, |thread| thread.keep_alive(env, on))
}
