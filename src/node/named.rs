//! The binding's part of locks that have names. A request is known by its number in this thread, which the record has.

use napi::bindgen_prelude::*;
use napi::{Env, sys};
use napi_derive::napi;

use super::beside::JsBeside;
use super::directories::space_of;
use super::handles::check;
use super::inspection::JsWaiter;
use super::process::{engine, limit, limit_with, names};
use super::record::Field;
use super::status;
use super::thread::JsThread;
use crate::clients::{Name, NameHold, NameView, QueuedName};
use crate::engine::{Mode, Outcome, Reply, Request};
use crate::fence;
use crate::primitives::named::NAMED;

/// The mode in which a name is held.
#[napi]
#[derive(Clone, Copy)]
pub enum NameMode {
    /// Alone.
    Exclusive,
    /// Together with others of this mode.
    Shared,
}

impl From<Mode> for NameMode {
    fn from(mode: Mode) -> Self {
        if mode == Mode::Shared { Self::Shared } else { Self::Exclusive }
    }
}

impl From<NameMode> for Mode {
    fn from(mode: NameMode) -> Self {
        match mode {
            NameMode::Exclusive => Self::Exclusive,
            NameMode::Shared => Self::Shared,
        }
    }
}

/// A string of JS, of whatever 16-bit units.
pub struct JsName {
    env: sys::napi_env,
    value: sys::napi_value,
}

impl FromNapiValue for JsName {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        Ok(Self { env, value })
    }
}

impl JsName {
    /// Returns the result of `act` on its units.
    fn with_units<T>(&self, act: impl FnOnce(&[u16]) -> T) -> Result<T> {
        let Self { env, value } = *self;
        let read = |to: *mut u16, room: usize| {
            let mut length = 0;
            // SAFETY: both are those of the call in progress, during which this lives; the buffer has that room, of which one is
            // for a zero behind the name. Without a buffer only the length is written.
            let status = unsafe { sys::napi_get_value_string_utf16(env, value, to, room, &mut length) };
            check(status).map(|()| length)
        };
        let mut short = [0; 128];
        let length = read(short.as_mut_ptr(), short.len())?;
        // A longer one may have been cut off.
        if length + 1 < short.len() {
            return Ok(act(&short[..length]));
        }
        let mut long = vec![0; read(std::ptr::null_mut(), 0)? + 1];
        let length = read(long.as_mut_ptr(), long.len())?;
        Ok(act(&long[..length]))
    }

    /// Its units.
    pub fn units(&self) -> Result<Vec<u16>> {
        self.with_units(<[u16]>::to_vec)
    }

    fn in_space(&self, space: u32) -> Result<Name> {
        self.with_units(|units| Name::new(space, units))
    }
}

/// The number of the space of names with this key, or of those in the directory of this number, the same in all threads; 0 is that of
/// the process.
#[napi(catch_unwind)]
pub fn name_space(of: Either<String, u32>) -> Result<u32> {
    match of {
        Either::A(key) => Ok(names().space(&key)),
        Either::B(directory) => space_of(directory),
    }
}

/// Asks for a name: `GRANTED`, `GRANTED_ABANDONED`, `PENDING`, `TIMED_OUT` (then the request is over) or `NO_CLOCK`.
/// `isPart`: with the name alone its code is not in, and `noteIn` says when it is. `hasSignal`: it may be aborted. If it waits, what is
/// beside it goes back as well if its time is over, soon after the wait is settled.
#[napi(
    catch_unwind,
    ts_args_type = "space: number, name: string, mode: NameMode, timeout: number, isPart: boolean, hasSignal: boolean, beside?: JsBeside"
)]
#[allow(clippy::too_many_arguments, reason = "as JS has them; not expected of what napi makes of it")]
pub fn request_name(
    env: Env,
    space: u32,
    name: JsName,
    mode: NameMode,
    timeout: f64,
    is_part: bool,
    has_signal: bool,
    beside: Option<JsBeside>,
) -> Result<i32> {
    let limit = limit_with(timeout, has_signal);
    let name = name.in_space(space)?;
    JsThread::with(env, |thread| match thread.event_loop.request_name(name, mode.into(), is_part, limit) {
        Ok((request, reply)) => {
            if let (Reply::Pending { token, .. }, Some(beside)) = (&reply, beside) {
                thread.event_loop.expires_with(*token, thread.beside(beside));
            }
            thread.record.set(Field::Number, f64::from(request.number));
            status::of_reply(Ok(reply), thread)
        }
        Err(error) => status::of_reply(Err(error), thread),
    })
}

/// Blocks this thread until it has the name. Returns a status; unless granted, the request is over. `isPart` as of `requestName`.
#[napi(catch_unwind, ts_args_type = "space: number, name: string, mode: NameMode, timeout: number, isPart: boolean")]
pub fn acquire_name(env: Env, space: u32, name: JsName, mode: NameMode, timeout: f64, is_part: bool) -> Result<i32> {
    let name = name.in_space(space)?;
    let (agent, request, mut call) = JsThread::with(env, |thread| {
        let request = thread.event_loop.make_request(name, mode.into(), is_part);
        (thread.event_loop.agent().clone(), request, thread.blocking_call(env))
    })?;
    // As in `JsThread::block`.
    let outcome = engine().wait(&agent, &NAMED, request.place, Request::Hold(request.hold), limit(timeout), &mut call);
    JsThread::with(env, |thread| {
        thread.note_wait(&call);
        thread.record.set(Field::Number, f64::from(request.number));
        if !matches!(outcome, Ok(Outcome::Granted { .. })) {
            thread.event_loop.forget_request(request);
        }
        status::of_wait(outcome, &call, thread)
    })
}

/// Takes the name from all who hold it. Returns a status.
#[napi(catch_unwind, ts_args_type = "space: number, name: string")]
pub fn steal_name(env: Env, space: u32, name: JsName) -> Result<i32> {
    let name = name.in_space(space)?;
    JsThread::with(env, |thread| match thread.event_loop.steal_name(name) {
        Ok((request, abandoned_by)) => {
            thread.record.set(Field::Number, f64::from(request.number));
            status::of_outcome(Outcome::granted(abandoned_by), thread)
        }
        Err(_) => status::CORRUPT,
    })
}

/// A number that is larger than all that this returned before in any thread, and is not below the microseconds of the wall clock.
#[napi(catch_unwind)]
pub fn next_fence() -> f64 {
    // Exact: microseconds reach 2^53 in the year 2255.
    names().fence(fence::now()) as f64
}

/// The name that a step of a deadlock's cycle means, which has this byte offset; `null` if it means none.
#[napi(catch_unwind)]
pub fn name_of(byte_offset: f64) -> Option<JsUnits> {
    names().name_of(byte_offset as usize).map(JsUnits)
}

/// 16-bit units, which become a string of JS.
pub struct JsUnits(pub Box<[u16]>);

impl ToNapiValue for JsUnits {
    unsafe fn to_napi_value(env: sys::napi_env, Self(units): Self) -> Result<sys::napi_value> {
        let mut value = std::ptr::null_mut();
        // SAFETY: `env` is that of the call in progress; the units are read during the call.
        check(unsafe { sys::napi_create_string_utf16(env, units.as_ptr(), units.len() as isize, &mut value) })?;
        Ok(value)
    }
}

/// The holds of a space and the requests for its names, as `query()` shows them. Not an object for each: of many, those would
/// take the time of a turn.
#[napi(object, object_from_js = false)]
pub struct NameRows {
    /// All names, one behind the other.
    #[napi(ts_type = "string")]
    pub names: JsUnits,
    /// The numbers of each row: where its name ends, the mode, whose it is, and for how many milliseconds it has held it; -1: it
    /// waits.
    pub rows: Float64Array,
}

/// The holds and the requests of a space at one moment, each in the order in which they came; first the holds.
#[napi(catch_unwind)]
pub fn query_names(space: u32) -> NameRows {
    let views = names().query(space);
    let views = views.iter();
    let mut names = Vec::new();
    let mut rows = Vec::with_capacity(views.len() * 4);
    for NameView { name, mode, thread, held } in views {
        names.extend_from_slice(name);
        let held_ms = held.map_or(-1.0, |held| held.as_secs_f64() * 1e3);
        rows.extend([names.len() as f64, f64::from(NameMode::from(mode) as u32), f64::from(thread), held_ms]);
    }
    NameRows { names: JsUnits(names.into()), rows: rows.into() }
}

/// A hold of a name.
#[napi(object, object_from_js = false)]
pub struct NameHolder {
    /// Tells it from the other holds of its thread.
    pub number: u32,
    /// Whose.
    pub thread_id: u32,
    /// The mode.
    #[napi(ts_type = "NameMode")]
    pub mode: u32,
    /// For how long.
    pub held_ms: f64,
    /// False: it has what the process has to give, and waits for more.
    pub is_in: bool,
}

impl From<NameHold> for NameHolder {
    fn from(hold: NameHold) -> Self {
        Self {
            number: hold.number,
            thread_id: hold.thread,
            mode: NameMode::from(hold.mode) as u32,
            held_ms: hold.held.as_secs_f64() * 1e3,
            is_in: hold.is_in,
        }
    }
}

/// Returns the holders of a name at this moment, in the order in which they came.
#[napi(catch_unwind, ts_args_type = "space: number, name: string")]
pub fn name_holders(space: u32, name: JsName) -> Result<Vec<NameHolder>> {
    let name = name.in_space(space)?;
    Ok(names().holders(&name).into_iter().map(NameHolder::from).collect())
}

/// A name with waiters, as `inspectAll()` shows it.
#[napi(object, object_from_js = false)]
pub struct WaitedName {
    /// The name.
    #[napi(ts_type = "string")]
    pub name: JsUnits,
    /// The holders.
    pub holders: Vec<NameHolder>,
    /// The waiters, in order.
    pub waiters: Vec<JsWaiter>,
}

/// A snapshot of every name with waiters.
#[napi(catch_unwind)]
pub fn queued_names() -> Vec<WaitedName> {
    let queued = |QueuedName { name, holders, waiters, .. }: QueuedName| WaitedName {
        name: JsUnits(name),
        holders: holders.into_iter().map(NameHolder::from).collect(),
        waiters: waiters.into_iter().map(JsWaiter::from).collect(),
    };
    names().queued().into_iter().map(queued).collect()
}
