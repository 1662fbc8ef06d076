//! The limits of the bench that JavaScript alone cannot reach: the system's futex on a word of shared memory, one
//! threadsafe function to make an event loop turn, and the system's lock on a file. Nothing of sablock is in here, and
//! nothing of this is in sablock.
//!
//! For `bench/lib/wakeups.js` and `bench/lib/machine-locks.js` only, which know what they pass.

use std::fs::File;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, RwLock};

use napi::bindgen_prelude::*;
use napi::sys;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use slab::Slab;

/// The elements of an `Int32Array` over a `SharedArrayBuffer`, during the call that it is an argument of.
pub struct Words {
    first: NonNull<AtomicU32>,
    length: usize,
}

impl FromNapiValue for Words {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        // SAFETY: `env` and `value` are those of the call in progress; the out-parameters live, null is allowed for the rest.
        check_status!(unsafe {
            sys::napi_get_typedarray_info(
                env,
                value,
                &mut kind,
                &mut length,
                &mut data,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        })?;
        match NonNull::new(data.cast()) {
            Some(first) if kind == sys::TypedarrayType::int32_array => Ok(Self { first, length }),
            _ => Err(Error::new(Status::InvalidArg, "expected an Int32Array")),
        }
    }
}

impl Words {
    fn at(&self, index: u32) -> Result<&AtomicU32> {
        if index as usize >= self.length {
            return Err(Error::new(Status::InvalidArg, format!("no element {index}")));
        }
        // SAFETY: inside the array, which is aligned and lives as long as the call; shared memory is used by Atomics only.
        Ok(unsafe { self.first.add(index as usize).as_ref() })
    }
}

/// Sleeps while the word holds `value`; may return early for no reason. Nothing but a wake ends it, `terminate()` neither.
#[napi]
pub fn futex_wait(words: Words, index: u32, value: i32) -> Result<()> {
    atomic_wait::wait(words.at(index)?, value.cast_unsigned());
    Ok(())
}

/// Wakes one thread that sleeps in `futexWait`, if there is one.
#[napi]
pub fn futex_wake(words: Words, index: u32) -> Result<()> {
    atomic_wait::wake_one(words.at(index)?);
    Ok(())
}

type Waker = ThreadsafeFunction<(), (), (), Status, false>;

/// By id, for all threads of the process.
static WAKERS: RwLock<Slab<Waker>> = RwLock::new(Slab::new());

/// A threadsafe function of the calling thread's loop; returns its id. It keeps the loop alive.
#[napi]
pub fn loop_waker(callback: Function<'_, (), ()>) -> Result<u32> {
    let waker = callback.build_threadsafe_function().build()?;
    let id = WAKERS.write().expect("nobody panics with it").insert(waker);
    u32::try_from(id).map_err(|_| Error::from_reason("too many wakers"))
}

/// Calls it, from any thread: its callback runs on its loop.
#[napi]
pub fn wake_loop(id: u32) -> Result<()> {
    let wakers = WAKERS.read().expect("nobody panics with it");
    let waker = wakers.get(id as usize).ok_or_else(|| Error::new(Status::InvalidArg, format!("no waker {id}")))?;
    check_status!(waker.call((), ThreadsafeFunctionCallMode::NonBlocking).into())
}

/// Lets go of it.
#[napi]
pub fn close_loop_waker(id: u32) {
    WAKERS.write().expect("nobody panics with it").try_remove(id as usize);
}

/// Files that are locked as wholes, by id: `flock`, or `LockFileEx`. Each id has a descriptor of its own.
static FILES: RwLock<Slab<Arc<File>>> = RwLock::new(Slab::new());

/// Makes the file if there is none.
#[napi]
pub fn open_file(path: String) -> Result<u32> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    let id = FILES.write().expect("nobody panics with it").insert(Arc::new(file));
    u32::try_from(id).map_err(|_| Error::from_reason("too many files"))
}

fn file(id: u32) -> Result<Arc<File>> {
    let files = FILES.read().expect("nobody panics with it");
    files.get(id as usize).cloned().ok_or_else(|| Error::new(Status::InvalidArg, format!("no file {id}")))
}

/// Blocks the calling thread until nobody else holds it. Only the kernel ends the wait.
#[napi]
pub fn lock_file(id: u32) -> Result<()> {
    Ok(file(id)?.lock()?)
}

#[napi]
pub fn unlock_file(id: u32) -> Result<()> {
    Ok(file(id)?.unlock()?)
}
