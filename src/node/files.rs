//! The binding's views of locks of files: who holds them, and by which descriptors.

use std::time::{SystemTime, UNIX_EPOCH};

use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

use super::directories::directory as find;
use super::named::{JsName, JsUnits, NameMode};
use super::thread::JsThread;
use crate::clients::Held;
use crate::files::reader::Listing;
use crate::files::{LockMode, RecordedHolder};

impl From<NameMode> for LockMode {
    fn from(mode: NameMode) -> Self {
        match mode {
            NameMode::Exclusive => Self::Exclusive,
            NameMode::Shared => Self::Shared,
        }
    }
}

/// The descriptors that keep a lock which this thread holds, and cleaners of old files out of its directory.
#[napi(catch_unwind)]
pub fn file_descriptors(env: Env, number: i64) -> Result<Vec<i32>> {
    JsThread::with(env, |thread| match thread.event_loop.held(number as u64) {
        Some(Held::File(hold)) => hold.with(|hold| hold.descriptors().collect()).unwrap_or_default(),
        _ => Vec::new(),
    })
}

/// A holder of a name in another process; -1 where that is not known.
#[napi(object, object_from_js = false)]
pub struct FileHolder {
    /// The process.
    pub pid: u32,
    /// Its thread.
    pub thread_id: f64,
    /// For how long it has held it, in milliseconds.
    pub held_ms: f64,
    /// When it has locked it, in milliseconds of Unix time.
    pub since: f64,
}

impl From<&RecordedHolder> for FileHolder {
    fn from(holder: &RecordedHolder) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        Self {
            pid: holder.process,
            thread_id: f64::from(holder.thread),
            held_ms: now.saturating_sub(holder.since) as f64,
            since: holder.since as f64,
        }
    }
}

/// The holders of the names of a directory. Not an object for each: of many, those would take the time of a turn.
#[napi(object, object_from_js = false)]
pub struct HolderRows {
    /// All names, one behind the other.
    #[napi(ts_type = "string")]
    pub names: JsUnits,
    /// The numbers of each row: where its name ends, the process, its thread, and for how many milliseconds it has held it.
    pub rows: Float64Array,
}

impl From<Listing> for HolderRows {
    fn from(listed: Listing) -> Self {
        let (mut names, mut rows) = (Vec::new(), Vec::new());
        for (name, holder) in listed.as_ref().as_ref().into_iter().flatten() {
            names.extend_from_slice(name);
            let FileHolder { pid, thread_id, held_ms, .. } = holder.into();
            rows.extend([names.len() as f64, f64::from(pid), thread_id, held_ms]);
        }
        Self { names: JsUnits(names.into()), rows: rows.into() }
    }
}

/// Returns the holders of one name of a directory in this mode: one that holds it alone, as it is without a mode, if its record says so;
/// those who share it as far as the system shows their processes.
#[napi(catch_unwind, ts_args_type = "directory: number, name: string, mode?: NameMode")]
pub fn file_holders(directory: u32, name: JsName, mode: Option<NameMode>) -> Result<Vec<FileHolder>> {
    let (directory, units) = (find(directory)?, name.units()?);
    let sharer = |pid| FileHolder { pid, thread_id: -1.0, held_ms: -1.0, since: -1.0 };
    Ok(match mode {
        Some(NameMode::Shared) => directory.sharers(&units).into_iter().map(sharer).collect(),
        _ => {
            let alone = directory.holder(&units).filter(|holder| !holder.is_here());
            alone.iter().map(FileHolder::from).collect()
        }
    })
}
