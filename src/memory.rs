//! A place in memory that JavaScript shares between threads: where a primitive keeps its words, or where threads wait.

use std::ptr::NonNull;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The width of the value that [`Place::holds`] compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    Four,
    Eight,
}

/// A place in shared memory. Whoever makes one answers for the memory; never a Rust reference to plain integers, since JS
/// writes there at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    at: NonNull<AtomicU32>,
    width: Width,
    /// Its offset in the buffer, for messages; for a name, see [`Place::name`].
    pub byte_offset: usize,
}

/// Set in the offset of a name; larger than any buffer, and exact as a number of JS.
const NAME: usize = 1 << 52;

// SAFETY: it is an address; all access goes through atomics, which any thread may use.
unsafe impl Send for Place {}

impl Place {
    /// The words of a primitive, or an element of an `Int32Array`.
    ///
    /// # Safety
    ///
    /// `at` is aligned to 4, readable and writable for as many words as its primitive has, accessed by atomic operations
    /// only, and stays so during each call that gets this place, and for as long as a wait that such a call began is
    /// pending. For a place that threads only wait at, plain writes by JS are allowed too.
    pub const unsafe fn new(at: NonNull<AtomicU32>, byte_offset: usize) -> Self {
        Self { at, width: Width::Four, byte_offset }
    }

    /// An element of a `BigInt64Array`.
    ///
    /// # Safety
    ///
    /// As for [`Place::new`], but eight bytes, aligned to 8.
    pub const unsafe fn big_int64(at: NonNull<AtomicU64>, byte_offset: usize) -> Self {
        Self { at: at.cast(), width: Width::Eight, byte_offset }
    }

    /// The two words of a lock that has a name instead of a place in a buffer; `serial` tells the name from all others.
    ///
    /// # Safety
    ///
    /// As for [`Place::new`].
    pub const unsafe fn name(at: NonNull<AtomicU32>, serial: usize) -> Self {
        Self { at, width: Width::Four, byte_offset: NAME | serial }
    }

    /// Whether it is the place of a name.
    pub const fn is_name(self) -> bool {
        self.byte_offset & NAME != 0
    }

    /// The key of its queue. Places of both widths that begin at the same byte are one.
    pub fn address(self) -> usize {
        self.at.as_ptr() as usize
    }

    /// Its first word.
    pub fn word(&self) -> &AtomicU32 {
        // SAFETY: aligned, live and atomic by the contract of `new`.
        unsafe { self.at.as_ref() }
    }

    /// Its second word, for a primitive that has two.
    pub fn second_word(&self) -> &AtomicU32 {
        // SAFETY: a primitive that calls this has two words, which are readable, writable and atomic by the contract of `new`.
        unsafe { self.at.add(1).as_ref() }
    }

    /// The value that an element holds now.
    pub fn value(&self) -> i64 {
        // SeqCst, as ECMAScript reads it: one order for all threads with the `Atomics` operations that write it.
        match self.width {
            Width::Four => i64::from(self.word().load(Ordering::SeqCst) as i32),
            // SAFETY: aligned to 8, live and atomic by the contract of `big_int64`.
            Width::Eight => unsafe { self.at.cast::<AtomicU64>().as_ref() }.load(Ordering::SeqCst) as i64,
        }
    }
}
