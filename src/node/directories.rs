//! Directories of locks, known by numbers, and why one or a file in it cannot be used.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::*;
use napi_derive::napi;

use super::process::names;
use crate::files::{Directory, FileFailure, Reason, Refusal};

static DIRECTORIES: Mutex<Vec<Arc<Directory>>> = Mutex::new(Vec::new());

fn directories() -> MutexGuard<'static, Vec<Arc<Directory>>> {
    DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn directory(number: u32) -> Result<Arc<Directory>> {
    let found = directories().get(number as usize).cloned();
    found.ok_or_else(|| Error::new(Status::InvalidArg, "expected a number from openDirectory()"))
}

/// Returns what two paths to the same directory have in common.
fn key(directory: &Directory) -> String {
    format!("{}:{}", directory.identity.0, directory.identity.1)
}

/// The directory whose names are in the space of this number. A directory that was removed leaves its number to a later one.
pub fn of_space(space: u32) -> Option<Arc<Directory>> {
    directories().iter().rev().find(|directory| names().space(&key(directory)) == space).cloned()
}

/// The number of the space of the names in this directory.
pub fn space_of(number: u32) -> Result<u32> {
    Ok(names().space(&key(&*directory(number)?)))
}

/// A directory that can be used.
#[napi(object, object_from_js = false)]
pub struct OpenedDirectory {
    /// Its number, the same in all threads.
    pub number: u32,
    /// Equal for two paths that lead to the same directory.
    pub key: String,
    /// Its path, without links.
    pub path: String,
}

/// Why a directory or a file cannot be used.
#[napi(object, object_from_js = false)]
pub struct JsFileFailure {
    /// Which.
    pub path: String,
    /// `owner`, `permissions`, `not-sticky`, `link`, `not-a-directory`, `no-parent`, `file-system`, `system` or `no-thread`.
    pub reason: String,
    /// The call that failed, or the name of the file system.
    pub what: String,
    /// The owner of the directory, or its permissions.
    pub found: u32,
    /// This user.
    pub user: u32,
    /// The system's words.
    pub message: String,
    /// The system's number of that; 0 if there is none.
    pub errno: i32,
}

pub fn describe(failure: FileFailure) -> JsFileFailure {
    let empty = |path: &Path, reason: &str| JsFileFailure {
        path: path.to_string_lossy().into_owned(),
        reason: reason.to_owned(),
        what: String::new(),
        found: 0,
        user: 0,
        message: String::new(),
        errno: 0,
    };
    let system = |path: &Path, reason, what: &str, error: io::Error| JsFileFailure {
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(0),
        message: error.to_string(),
        ..empty(path, reason)
    };
    match failure {
        FileFailure::NoThread(error) => system(Path::new(""), "no-thread", "", error),
        FileFailure::System { verb, path, error } => system(&path, "system", verb, error),
        FileFailure::Refused(Refusal { path, reason }) => match reason {
            Reason::Owner { owner, user } => JsFileFailure { found: owner, user, ..empty(&path, "owner") },
            Reason::Permissions(mode) => JsFileFailure { found: mode, ..empty(&path, "permissions") },
            Reason::NotSticky(mode) => JsFileFailure { found: mode, ..empty(&path, "not-sticky") },
            Reason::Link => empty(&path, "link"),
            Reason::NotADirectory => empty(&path, "not-a-directory"),
            Reason::NoParent => empty(&path, "no-parent"),
            Reason::FileSystem(name) => JsFileFailure { what: name.to_owned(), ..empty(&path, "file-system") },
            Reason::System(error) => system(&path, "system", "use", error),
        },
    }
}

/// Opens the directory at this path, or the user's own.
#[napi(catch_unwind, ts_return_type = "OpenedDirectory | JsFileFailure")]
pub fn open_directory(path: Option<String>) -> Either<OpenedDirectory, JsFileFailure> {
    match Directory::open(path.as_deref().map(Path::new)) {
        Err(refusal) => Either::B(describe(FileFailure::Refused(refusal))),
        Ok(opened) => {
            let key = key(&opened);
            let path = opened.path().to_string_lossy().into_owned();
            let mut all = directories();
            let number = all.iter().position(|other| other.is_as(&opened)).unwrap_or_else(|| {
                all.push(Arc::new(opened));
                all.len() - 1
            });
            Either::A(OpenedDirectory { number: number as u32, key, path })
        }
    }
}
