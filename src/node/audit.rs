//! The binding's half of the audit, for tests: remains of this thread and of the process.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;
use parking_lot::Mutex;

use super::process::engine;
use super::thread::JsThread;

/// Remains of threads that have ended.
static LEFT_BY_ENDED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns the faults in queues and registers, and what is left of names, files, stores and this thread.
#[napi(catch_unwind)]
pub fn audit(env: Env) -> Result<Vec<String>> {
    let own = JsThread::with(env, |thread| [thread.wrong(), thread.lent_to_nobody()].concat())?;
    let ended = LEFT_BY_ENDED.lock().clone();
    Ok([engine().audit(), crate::files::audit::left(), super::desks::left(), own, ended].concat())
}

impl JsThread {
    /// The thread is about to end: the audit of another will say what is wrong here. A hold that is lent to nobody may be right: it may
    /// have been terminated between the two calls by which its code lends one and waits.
    pub(super) fn note_wrong(&self) {
        LEFT_BY_ENDED.lock().extend(self.wrong());
    }

    /// Guards whose hold is with no wait, while nothing is pending.
    fn lent_to_nobody(&self) -> Vec<String> {
        if self.event_loop.pending() > 0 {
            return Vec::new();
        }
        let number = self.number();
        self.holds.away().map(|address| format!("a hold of thread {number} at {address:#x}, lent to nobody")).collect()
    }

    /// Memory that is kept for no wait, and waits whose memory nothing keeps.
    fn wrong(&self) -> Vec<String> {
        let number = self.number();
        let mut needed: Vec<usize> = self.settled.into_iter().collect();
        needed.extend(self.set_places(None).iter().map(|place| place.address()));
        let waits: Vec<_> = self.event_loop.waits_for().collect();
        for (token, place) in waits.iter().filter(|(_, place)| !place.is_name()) {
            let set = self.set_places(Some(*token));
            let places = if set.is_empty() { vec![*place] } else { set };
            needed.extend(places.iter().map(|place| place.address()));
        }
        let anchored = self.anchors.addresses();
        needed.sort_unstable();
        let mut wrong = Vec::new();
        if anchored != needed {
            wrong.push(format!(
                "thread {number} keeps the memory at {anchored:x?}, and waits for what is at {needed:x?}"
            ));
        }
        wrong
    }
}
