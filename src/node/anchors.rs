//! Keeps the buffers of pending waits alive, whatever JS does meanwhile: the queue points into their memory,
//! and the address of a buffer that is collected is used again.

use napi::bindgen_prelude::*;
use napi::sys;
use rustc_hash::FxHashMap;

use super::handles::{check, reference};

/// One strong reference for each address that this thread waits for, with the number of its waits.
#[derive(Default)]
pub struct Anchors(FxHashMap<usize, Anchor>);

struct Anchor {
    view: sys::napi_ref,
    waits: u32,
}

impl Anchors {
    /// A wait for what is at `address`, in the buffer of `view`, begins.
    pub fn hold(&mut self, env: sys::napi_env, address: usize, view: sys::napi_value) -> Result<()> {
        if let Some(anchor) = self.0.get_mut(&address) {
            anchor.waits += 1;
        } else {
            let view = reference(env, view)?;
            self.0.insert(address, Anchor { view, waits: 1 });
        }
        Ok(())
    }

    /// A wait for what is at `address` is over, and nobody will touch its memory for its sake any more.
    pub fn release(&mut self, env: sys::napi_env, address: usize) -> Result<()> {
        let Some(anchor) = self.0.get_mut(&address) else { return Ok(()) };
        anchor.waits -= 1;
        if anchor.waits > 0 {
            return Ok(());
        }
        let view = anchor.view;
        self.0.remove(&address);
        if self.0.is_empty() {
            self.0.shrink_to(crate::agents::SPARE);
        }
        // SAFETY: made by `hold` in this environment, deleted once, on its thread.
        check(unsafe { sys::napi_delete_reference(env, view) })
    }

    /// The address of each wait whose memory is kept, in order.
    #[cfg(feature = "audit")]
    pub fn addresses(&self) -> Vec<usize> {
        let all = self.0.iter().flat_map(|(address, anchor)| (0..anchor.waits).map(move |_| *address));
        let mut all: Vec<usize> = all.collect();
        all.sort_unstable();
        all
    }
}
