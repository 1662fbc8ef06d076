//! The holds that go back with a wait that the clock ends: what was asked for together with it, and so far is held.

use std::sync::Arc;

use napi_derive::napi;

use super::thread::JsThread;
use crate::engine::Expiry;

/// Holds of one thread, by their numbers, whose code does not know yet that it has them all.
#[napi(object, object_to_js = false)]
pub struct JsBeside {
    /// The requests for names.
    pub requests: Vec<u32>,
    /// For each of these the ended holder that is still to be reported; 0: none.
    pub reports: Vec<u32>,
    /// The holds outside of the process.
    pub outer: Vec<i64>,
}

impl JsThread {
    /// Returns the holds that these name.
    pub fn beside(&self, JsBeside { requests, reports, outer }: JsBeside) -> Arc<dyn Expiry> {
        let reports = reports.into_iter().map(|ended| (ended != 0).then_some(ended));
        self.event_loop.held_by(requests.into_iter().zip(reports), &outer)
    }
}
