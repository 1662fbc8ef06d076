//! The record that a thread's JS shares with the core: what there is to know of the last call beside its status. Numbers in one
//! array, because an object for each call would cost more than the call, and cannot be made in a thread that is ending.

use std::ptr::NonNull;

use napi::bindgen_prelude::*;
use napi::sys;
use napi_derive::napi;

use super::views::TypedArray;
use crate::agents::AgentId;
use crate::clients::PartWait;
use crate::engine::Hop;

/// The places in the record.
#[napi]
#[derive(Clone, Copy)]
pub enum Field {
    /// The wait that is pending, or was settled.
    Token,
    /// 1 if that wait was to hold something, 0 if for a notification.
    IsForHold,
    /// The thread that ended inside, or -1.
    EndedThread,
    /// The process that ended, or whose thread did, of a lock of a file; -1 if that is not known.
    EndedProcess,
    /// The thread that held when the last wait began, or -1.
    OwnerThread,
    /// The thread that holds the word that `hold()` has looked at, running or ended; -1 if none does.
    Holder,
    /// For how long the last blocking call has waited in the queue, in milliseconds; -1 if it has not.
    WaitedMs,
    /// The state that the last call found when it queued, or has changed: how many had come to the barrier, the count of the
    /// latch; -1 if it did neither.
    Found,
    /// The state that the last request found when it was let in.
    Given,
    /// The number of parties of the barrier that refused the last call; 0 if it is broken.
    Parties,
    /// 1 if a condition's wait ended with a notification.
    IsNotified,
    /// The lock, of several at once, that was awaited last, or could not be had, as its place in the list; -1 if none was.
    StoppedAt,
    /// The number of locks, of several at once, each counted once.
    Locks,
    /// 1 if `takeEnded` has something for the primitive that the last wait was for.
    HasEnded,
    /// 1 if any hold of the thread's guards is lent to a wait, lost, or watched.
    HasAway,
    /// The number of what the last call made: a request for a name, or for what is kept outside of the process; or of a guard's hold.
    Number,
    /// The fence of a lock that is kept outside of the process, if it was wanted: an integer of 64 bits in the place of a number.
    Fence,
    /// The loss of the lock in a store: 1, the store did not answer; 2, it has taken it; 3, its manager was closed; 4, the lock worker
    /// has ended.
    Loss,
    /// The number of steps of the cycle; each is a thread and the byte offset of the lock that it waits for.
    CycleLength,
    /// The first step.
    Cycle,
}

/// The record has room for so many steps of a cycle; of a longer one it has the first.
const STEPS: usize = 28;

/// The number of its numbers.
#[napi]
pub const RECORD_LENGTH: u32 = Field::Cycle as u32 + 2 * STEPS as u32;

/// The place of the record.
pub struct Record(NonNull<f64>);

impl Record {
    /// The record in a `Float64Array`, which its thread keeps.
    ///
    /// # Safety
    ///
    /// `env` and `array` are those of the call in progress; `array` is kept, and its buffer not detached, as long as this.
    pub unsafe fn new(env: sys::napi_env, array: sys::napi_value) -> Result<Self> {
        // SAFETY: by the contract of this function.
        match unsafe { TypedArray::read(env, array) } {
            Some(TypedArray { kind: sys::TypedarrayType::float64_array, length, data, .. })
                if length >= RECORD_LENGTH as usize =>
            {
                Ok(Self(data.cast()))
            }
            _ => Err(Error::new(Status::InvalidArg, "expected a Float64Array of RECORD_LENGTH")),
        }
    }

    /// Sets a number.
    pub fn set(&mut self, field: Field, value: f64) {
        self.write(field as usize, value);
    }

    /// Sets the fence.
    pub fn set_fence(&mut self, fence: u64) {
        // SAFETY: as in `write`; both have eight bytes.
        unsafe { self.0.as_ptr().cast::<u64>().add(Field::Fence as usize).write(fence) };
    }

    /// Sets the cycle of a deadlock.
    pub fn set_cycle(&mut self, cycle: &[Hop]) {
        let cycle = &cycle[..cycle.len().min(STEPS)];
        self.set(Field::CycleLength, cycle.len() as f64);
        for (step, hop) in cycle.iter().enumerate() {
            let place = Field::Cycle as usize + 2 * step;
            self.write(place, f64::from(hop.thread));
            self.write(place + 1, hop.byte_offset as f64);
        }
    }

    fn write(&mut self, place: usize, value: f64) {
        // SAFETY: `place` is below the length that `new` has seen; the memory lives by its contract, and only this thread
        // and its JS, which does not run now, touch it.
        unsafe { self.0.as_ptr().add(place).write(value) };
    }
}

/// The state that the last set of locks found.
#[derive(Default)]
pub struct Found {
    /// The locks by their places in the list, each lock once.
    pub indices: Vec<usize>,
    /// The ended agents that are to be reported, each with the lock's place in the list.
    pub reports: Vec<(usize, AgentId)>,
    /// The waits of a call that blocked.
    pub waits: Vec<PartWait>,
}
