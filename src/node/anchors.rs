//! Keeps the buffers of pending waits alive, whatever JS does meanwhile: the queue points into their memory,
//! and the address of a buffer that is collected is used again.

use napi::bindgen_prelude::*;
use napi::sys;
use rustc_hash::FxHashMap;

use super::thread::{check, reference};
use super::word::JsWord;
use crate::shared_word::SharedWord;

/// One strong reference for each word that this thread waits for, with the number of its waits.
#[derive(Default)]
pub struct Anchors(FxHashMap<usize, Anchor>);

struct Anchor {
    view: sys::napi_ref,
    waits: u32,
}

impl Anchors {
    /// A wait for `word` begins.
    pub fn hold(&mut self, env: sys::napi_env, word: &JsWord) -> Result<()> {
        if let Some(anchor) = self.0.get_mut(&word.0.address()) {
            anchor.waits += 1;
        } else {
            let view = reference(env, word.1)?;
            self.0.insert(word.0.address(), Anchor { view, waits: 1 });
        }
        Ok(())
    }

    /// A wait for `word` is over, and nobody will touch its memory for its sake any more.
    pub fn release(&mut self, env: sys::napi_env, word: SharedWord) -> Result<()> {
        let Some(anchor) = self.0.get_mut(&word.address()) else { return Ok(()) };
        anchor.waits -= 1;
        if anchor.waits > 0 {
            return Ok(());
        }
        let view = anchor.view;
        self.0.remove(&word.address());
        if self.0.is_empty() {
            self.0.shrink_to(crate::agent::SPARE);
        }
        // SAFETY: made by `hold` in this environment, deleted once, on its thread.
        check(unsafe { sys::napi_delete_reference(env, view) })
    }
}
