//! Gives back, with a wait that the clock ends, what was asked for together with it, and so far is held.

use std::sync::Arc;

use napi_derive::napi;

use super::thread::JsThread;
use crate::clients::{InFile, InStore, StoreHold, ThreadHold};
use crate::engine::{Expiry, TakesBack};

/// The same for JS: numbers of this thread.
#[napi(object, object_to_js = false)]
pub struct JsBeside {
    /// The requests for names.
    pub requests: Vec<u32>,
    /// For each of these the ended holder that is still to be reported; 0: none.
    pub reports: Vec<u32>,
    /// The holds of files.
    pub files: Vec<i64>,
    /// The holds of stores.
    pub stores: Vec<i64>,
}

/// Holds of one thread, whose code does not know yet that it has them all.
pub struct Beside {
    names: Arc<dyn Expiry>,
    files: Vec<ThreadHold>,
    stores: Vec<StoreHold>,
}

impl Expiry for Beside {
    fn expired(&self, engine: &dyn TakesBack) {
        for hold in self.stores.iter().rev() {
            hold.release(false);
        }
        for hold in self.files.iter().rev() {
            hold.give_back();
        }
        self.names.expired(engine);
    }

    fn gives_back(&self, address: usize) -> bool {
        self.names.gives_back(address)
    }
}

impl JsThread {
    /// Returns the holds that these name.
    pub fn beside(&mut self, JsBeside { requests, reports, files, stores }: JsBeside) -> Beside {
        let event_loop = &mut self.event_loop;
        let reports = reports.into_iter().map(|ended| (ended != 0).then_some(ended));
        Beside {
            names: event_loop.held_by(requests.into_iter().zip(reports)),
            files: event_loop.outside_holds::<InFile>(&files),
            stores: event_loop.outside_holds::<InStore>(&stores),
        }
    }
}
