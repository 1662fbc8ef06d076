//! Desks, known by numbers in all threads, and the leases of their lock workers.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::*;
use rustc_hash::FxHashMap;

use crate::agents::AgentId;
use crate::desk::{Desk, Lease};

/// The leases of a lock worker, by number.
#[derive(Default)]
pub struct Leases {
    pub(super) all: FxHashMap<i64, Arc<Lease>>,
    /// None comes twice; 0 is none.
    pub(super) last: i64,
}

/// A desk, who serves it, and who started that.
pub struct OpenDesk {
    pub(super) desk: Arc<Desk>,
    pub(super) server: AgentId,
    pub(super) is_of_main: bool,
    /// Main has yet to start its lock worker.
    pub(super) is_due: bool,
}

/// Some desk was due once: most processes have none.
pub static HAS_DUE: AtomicBool = AtomicBool::new(false);
static DESKS: Mutex<Vec<OpenDesk>> = Mutex::new(Vec::new());

pub fn desks() -> MutexGuard<'static, Vec<OpenDesk>> {
    DESKS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn desk(number: u32) -> Result<Arc<Desk>> {
    let found = desks().get(number as usize).map(|entry| Arc::clone(&entry.desk));
    found.ok_or_else(|| Error::new(Status::InvalidArg, "expected the number of a desk"))
}

/// The environment of this agent is torn down: a desk that it serves ends.
pub fn agent_ended(agent: AgentId) {
    let ended: Vec<Arc<Desk>> =
        desks().iter().filter(|entry| entry.server == agent).map(|entry| Arc::clone(&entry.desk)).collect();
    ended.iter().for_each(|desk| desk.end(WORKER_ENDED));
}

/// Remains at desks, for the audit.
#[cfg(feature = "audit")]
pub fn left() -> Vec<String> {
    desks().iter().flat_map(|entry| entry.desk.left()).collect()
}

/// The lock workers.
pub fn servers() -> Vec<AgentId> {
    desks().iter().map(|entry| entry.server).collect()
}

/// As the lock worker says why something failed.
const WORKER_ENDED: &str =
    r#"{"code":"ERR_LOCK_STORE","message":"The thread that keeps the locks of the store has ended."}"#;

pub fn open(all: &mut Vec<OpenDesk>, is_of_main: bool, is_due: bool) -> u32 {
    all.push(OpenDesk { desk: Arc::default(), server: 0, is_of_main, is_due });
    all.len() as u32 - 1
}
