//! A lock word in memory that JavaScript shares between threads.

use std::ptr::NonNull;

use crate::sync::AtomicU32;

/// Where a lock word is. Whoever makes one answers for the memory (see [`SharedWord::new`]);
/// never a Rust reference to plain integers, since JS writes there at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedWord {
    at: NonNull<AtomicU32>,
    /// Its place in the buffer, for messages.
    pub byte_offset: usize,
}

// SAFETY: it is an address; all access goes through an atomic, which any thread may use.
unsafe impl Send for SharedWord {}

impl SharedWord {
    /// A word at `at`.
    ///
    /// # Safety
    ///
    /// `at` is aligned to 4, readable and writable, accessed by atomic operations only, and stays so
    /// during each call that gets this word, and for as long as a wait that such a call began is pending.
    pub const unsafe fn new(at: NonNull<AtomicU32>, byte_offset: usize) -> Self {
        Self { at, byte_offset }
    }

    /// The key of its queue.
    pub fn address(self) -> usize {
        self.at.as_ptr() as usize
    }

    /// The atomic itself.
    pub fn atomic(&self) -> &AtomicU32 {
        // SAFETY: aligned, live and atomic by the contract of `new`.
        unsafe { self.at.as_ref() }
    }
}
