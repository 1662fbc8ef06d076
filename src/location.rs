//! An integer in memory that JavaScript shares between threads, on which threads wait.

use std::ptr::NonNull;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// An element of an `Int32Array` or a `BigInt64Array`. Whoever makes one answers for the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location(Element);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    Int32(NonNull<AtomicU32>),
    BigInt64(NonNull<AtomicU64>),
}

// SAFETY: it is an address; all access goes through an atomic, which any thread may use.
unsafe impl Send for Location {}

impl Location {
    /// An element of four bytes.
    ///
    /// # Safety
    ///
    /// `at` is aligned to 4, readable, accessed by atomic operations only, and stays so during each call that gets this
    /// location; its memory is not given to anybody else while a wait that such a call began is pending.
    pub const unsafe fn int32(at: NonNull<AtomicU32>) -> Self {
        Self(Element::Int32(at))
    }

    /// An element of eight bytes.
    ///
    /// # Safety
    ///
    /// As for [`Location::int32`], but aligned to 8.
    pub const unsafe fn big_int64(at: NonNull<AtomicU64>) -> Self {
        Self(Element::BigInt64(at))
    }

    /// By this its waiters are found. Elements of both sizes that begin at the same byte are one location.
    pub fn address(self) -> usize {
        match self.0 {
            Element::Int32(at) => at.as_ptr() as usize,
            Element::BigInt64(at) => at.as_ptr() as usize,
        }
    }

    /// Whether it holds `value` now.
    pub fn holds(self, value: i64) -> bool {
        // SeqCst, as ECMAScript reads it: one order for all threads with the `Atomics` operations that write it.
        match self.0 {
            // SAFETY: aligned, live and atomic by the contract of `int32`.
            Element::Int32(at) => i64::from(unsafe { at.as_ref() }.load(Ordering::SeqCst) as i32) == value,
            // SAFETY: aligned, live and atomic by the contract of `big_int64`.
            Element::BigInt64(at) => unsafe { at.as_ref() }.load(Ordering::SeqCst) as i64 == value,
        }
    }
}
