//! What goes back with a wait that the clock ends: what was asked for together with it, and so far is held.

use std::sync::Arc;

use super::thread::JsThread;
use super::thread_files::{ThreadHold, give_back};
use crate::desk::{Desk, Inquiry};
use crate::engine::{Expiry, TakesBack};

/// Holds of one thread, whose code does not know yet that it has them all.
pub struct Beside {
    names: Arc<dyn Expiry>,
    files: Vec<ThreadHold>,
    stores: Vec<(Arc<Desk>, Arc<Inquiry>)>,
}

impl Expiry for Beside {
    fn expired(&self, engine: &dyn TakesBack) {
        for (desk, inquiry) in self.stores.iter().rev() {
            desk.release(inquiry, false);
        }
        for hold in self.files.iter().rev() {
            give_back(hold.take());
        }
        self.names.expired(engine);
    }
}

impl JsThread {
    /// What these requests, holds of files and holds of stores hold; of each request with the ended holder that is still to be
    /// reported, or 0.
    pub fn beside(&self, requests: Vec<u32>, reports: Vec<u32>, files: Vec<u32>, stores: Vec<u32>) -> Beside {
        let reports = reports.into_iter().map(|ended| (ended != 0).then_some(ended));
        Beside {
            names: self.event_loop.held_by(requests.into_iter().zip(reports)),
            files: files.iter().filter_map(|number| self.files.holds.get(number).cloned()).collect(),
            stores: stores.iter().filter_map(|number| self.stores.inquiries.get(number).cloned()).collect(),
        }
    }
}
