//! The leases of a lock worker, known by numbers to its thread, and their clock.

use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

use super::desks::desk;
use super::thread::JsThread;
use crate::desk::{Lease, Loss};

/// A new lease, which ends at `until`, in the time of `leaseTime()`.
#[napi(catch_unwind)]
pub fn begin_lease(env: Env, until: f64) -> Result<i64> {
    JsThread::with(env, |thread| {
        let lease = Lease::endless();
        lease.set_end(until);
        thread.leases.last += 1;
        thread.leases.all.insert(thread.leases.last, lease);
        thread.leases.last
    })
}

/// When a lease ends. Returns whether it has not ended before.
#[napi(catch_unwind)]
pub fn extend_lease(env: Env, number: i64, until: f64) -> Result<bool> {
    JsThread::with(env, |thread| {
        thread.leases.all.get(&number).is_some_and(|lease| {
            let goes_on = lease.lost().is_none();
            if goes_on {
                lease.set_end(until);
            }
            goes_on
        })
    })
}

/// A lease is over, with this loss for whoever holds by it; 0: nobody does.
#[napi(catch_unwind)]
pub fn end_lease(env: Env, desk: u32, number: i64, loss: u32) -> Result<()> {
    let desk = self::desk(desk)?;
    let lease = JsThread::with(env, |thread| thread.leases.all.remove(&number))?;
    if let Some(lease) = lease.filter(|_| loss != 0) {
        desk.end_lease(&lease, Loss::from_number(loss));
    }
    Ok(())
}

/// Milliseconds of a clock that counts the time in which the machine sleeps, the same in all threads.
#[napi(catch_unwind)]
pub fn lease_time() -> f64 {
    crate::desk::now()
}
