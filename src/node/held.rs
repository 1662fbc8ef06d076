//! The binding's verbs for what a thread holds by a number: names of the process, and locks outside of it, of files and in stores.

use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

use super::outer::fail;
use super::record::Field;
use super::status::{self, GRANTED, GRANTED_ABANDONED, LOST, NOT_OWNER, RELEASED, REMOVED};
use super::thread::JsThread;
use crate::clients::Held;
use crate::desk::Loss;
use crate::files::{FileHold, Released};

/// A number, which names have below all others.
enum Numbered {
    Name(u32),
    Outer(u64),
}

fn numbered(number: i64) -> Numbered {
    u32::try_from(number).map_or(Numbered::Outer(number as u64), Numbered::Name)
}

fn of_loss(loss: Option<Loss>, thread: &mut JsThread) -> Option<i32> {
    thread.record.set(Field::Loss, f64::from(loss? as u32));
    Some(LOST)
}

/// Releases what is held; its number is over. Returns a status. Of a name as for `release`, `NOT_OWNER`: it was stolen. Of a file
/// `REMOVED`, or `FAILED` if its record could not be written. In a store `LOST` if it was lost before, and `LOSS` says how; if so, or if
/// its holder `hasEnded`, with a mark, where that leaves one.
#[napi(catch_unwind)]
pub fn release_held(env: Env, number: i64, has_ended: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        let number = match numbered(number) {
            Numbered::Name(number) => return status::of_release(thread.event_loop.release_name(number)),
            Numbered::Outer(number) => number,
        };
        match thread.event_loop.remove_held(number) {
            None => RELEASED,
            Some(Held::Store(hold)) => of_loss(hold.release(has_ended), thread).unwrap_or(RELEASED),
            Some(Held::File(hold)) => match hold.take().map(FileHold::release) {
                None | Some(Released::Whole) => RELEASED,
                Some(Released::Removed) => REMOVED,
                Some(Released::Unwritten(failure)) => fail(thread, failure),
            },
        }
    })
}

/// As `releaseHeld`, for the lock of a name that could not be marked as released in JS: a second release has no effect.
#[napi(catch_unwind)]
pub fn let_go_of_name(env: Env, number: u32) -> Result<i32> {
    JsThread::with(env, |thread| status::of_release(thread.event_loop.let_go_of_name(number)))
}

/// Takes back what was granted, since its code will not run with it; its number is over. An ended holder of a name that is still to be
/// reported will be by the next.
#[napi(catch_unwind)]
pub fn give_back_held(env: Env, number: i64) -> Result<()> {
    JsThread::with(env, |thread| match numbered(number) {
        Numbered::Name(number) => {
            let abandoned_by = thread.abandoned_by.take();
            thread.event_loop.give_back_name(number, abandoned_by);
        }
        Numbered::Outer(number) => {
            if let Some(held) = thread.event_loop.remove_held(number) {
                held.give_back(false);
            }
        }
    })
}

/// Notes that a hold does not suffice yet: until `isIn`, a name shows as pending, and the end of the thread leaves no mark outside.
/// `GRANTED`; or `FAILED`, and no code may run with it; or `NOT_OWNER`: the name was stolen.
#[napi(catch_unwind)]
pub fn note_in(env: Env, number: i64, is_in: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        let noted = match numbered(number) {
            Numbered::Name(number) => {
                let is_held = |request| thread.event_loop.note_in(request, is_in);
                return if thread.event_loop.request(number).is_some_and(is_held) { GRANTED } else { NOT_OWNER };
            }
            Numbered::Outer(number) => match thread.event_loop.held(number) {
                None => None,
                Some(Held::File(hold)) => hold.with(|hold| hold.note_in(is_in)),
                Some(Held::Store(hold)) => {
                    hold.note_in(is_in);
                    None
                }
            },
        };
        match noted {
            Some(Err(failure)) => fail(thread, failure),
            _ => GRANTED,
        }
    })
}

/// Returns the status of a hold, which may have changed: `GRANTED`; `GRANTED_ABANDONED` for a name that is marked; `LOST` in a store,
/// and `LOSS` says how.
#[napi(catch_unwind)]
pub fn look_at_held(env: Env, number: i64) -> Result<i32> {
    JsThread::with(env, |thread| match numbered(number) {
        Numbered::Name(number) if thread.event_loop.is_name_abandoned(number) => GRANTED_ABANDONED,
        Numbered::Name(_) => GRANTED,
        Numbered::Outer(number) => {
            let lost = match thread.event_loop.held(number) {
                Some(Held::Store(hold)) => hold.lost(),
                Some(Held::File(_)) | None => None,
            };
            of_loss(lost, thread).unwrap_or(GRANTED)
        }
    })
}

/// Takes the mark of abandonment off a name, or a file, that is held alone. `NOT_OWNER`: the name is not. A store is told otherwise.
#[napi(catch_unwind)]
pub fn mark_consistent(env: Env, number: i64) -> Result<i32> {
    JsThread::with(env, |thread| match numbered(number) {
        Numbered::Name(number) => status::of_release(thread.event_loop.mark_name_consistent(number)),
        Numbered::Outer(number) => {
            if let Some(Held::File(hold)) = thread.event_loop.held(number) {
                hold.with(FileHold::mark_consistent);
            }
            RELEASED
        }
    })
}

/// The next hold of this thread that was lost in a store, or a name that was stolen, which is over; -1 if there is none.
#[napi(catch_unwind)]
pub fn next_lost(env: Env) -> Result<i64> {
    let next = |thread: &mut JsThread| {
        let event_loop = &mut thread.event_loop;
        event_loop.next_lost().map(|number| number as i64).or_else(|| event_loop.next_stolen().map(i64::from))
    };
    JsThread::with(env, next).map(|number| number.unwrap_or(-1)).or(Ok(-1))
}
