//! The report as JSON, which JS parses: the shape of `DoctorReport` in `doctor.d.ts`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::State;
use super::report::{
    ContentionReport, DeadlockReport, DelayReport, EdgeReport, HoldReport, LockName, PendingReport, Place, Report,
    WaitReport,
};
use super::stuck::Stuck;
use super::trace::{Slice, SliceKind};

/// A JSON text.
trait Json {
    fn json(&self) -> String;
}

fn list<T: Json>(items: &[T]) -> String {
    format!("[{}]", items.iter().map(Json::json).collect::<Vec<_>>().join(","))
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

impl Json for String {
    fn json(&self) -> String {
        let mut text = String::with_capacity(self.len() + 2);
        text.push('"');
        for character in self.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                other if (other as u32) < 0x20 => {
                    // Writing to a string does not fail.
                    let _ = write!(text, "\\u{:04x}", other as u32);
                }
                other => text.push(other),
            }
        }
        text.push('"');
        text
    }
}

impl Json for u32 {
    fn json(&self) -> String {
        self.to_string()
    }
}

impl Json for Place {
    fn json(&self) -> String {
        format!(r#"{{"threadId":{},"stack":{}}}"#, self.thread, list(&self.stack))
    }
}

impl<T: Json> Json for Option<T> {
    fn json(&self) -> String {
        self.as_ref().map_or_else(|| "null".into(), Json::json)
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self) -> String {
        list(self)
    }
}

impl Json for LockName {
    fn json(&self) -> String {
        let offset = self.byte_offset.map_or_else(|| "null".into(), |offset| offset.to_string());
        format!(r#"{{"name":{},"kind":{},"byteOffset":{offset}}}"#, self.name.json(), self.kind.json())
    }
}

impl Json for EdgeReport {
    fn json(&self) -> String {
        let (from, to, held, locked) = (self.from.json(), self.to.json(), self.held.json(), self.locked.json());
        format!(r#"{{"from":{from},"to":{to},"held":{held},"locked":{locked}}}"#)
    }
}

impl Json for PendingReport {
    fn json(&self) -> String {
        let (lock, waiter, holders) = (self.lock.json(), self.waiter.json(), list(&self.holders));
        let outside = self
            .outside
            .map_or_else(|| "null".into(), |(pid, held)| format!(r#"{{"pid":{pid},"heldMs":{}}}"#, ms(held)));
        let waited = ms(self.waited);
        format!(r#"{{"lock":{lock},"waiter":{waiter},"waitedMs":{waited},"holders":{holders},"outside":{outside}}}"#)
    }
}

impl Json for WaitReport {
    fn json(&self) -> String {
        let (lock, holder, waiter) = (self.lock.json(), self.holder.json(), self.waiter.json());
        format!(r#"{{"lock":{lock},"holder":{holder},"waiter":{waiter},"waitedMs":{}}}"#, ms(self.waited))
    }
}

impl DeadlockReport {
    /// As JSON.
    pub fn json(&self) -> String {
        let certainty = if self.is_certain { "certain" } else { "likely" };
        format!(r#"{{"certainty":"{certainty}","waits":{}}}"#, list(&self.waits))
    }
}

impl Json for DeadlockReport {
    fn json(&self) -> String {
        self.json()
    }
}

impl Json for DelayReport {
    fn json(&self) -> String {
        format!(r#"{{"place":{},"waits":{},"totalMs":{}}}"#, self.place.json(), self.waits, ms(self.total))
    }
}

impl Json for ContentionReport {
    fn json(&self) -> String {
        let (lock, waiters, unlockers) = (self.lock.json(), list(&self.waiters), list(&self.unlockers));
        let (waits, total, longest) = (self.waits, ms(self.total), ms(self.longest));
        format!(
            r#"{{"lock":{lock},"waits":{waits},"totalMs":{total},"maxMs":{longest},"waiters":{waiters},"unlockers":{unlockers}}}"#
        )
    }
}

impl Json for Stuck {
    fn json(&self) -> String {
        let (lock, holders, waiters) = (self.lock.json(), list(&self.holders), list(&self.waiters));
        format!(r#"{{"lock":{lock},"holders":{holders},"waiters":{waiters}}}"#)
    }
}

/// A list of edges, as a member of `lockOrder`.
struct Cycle<'a>(&'a [EdgeReport]);

impl Json for Cycle<'_> {
    fn json(&self) -> String {
        format!(r#"{{"edges":{}}}"#, list(self.0))
    }
}

/// A hold, as a member of `longHolds`, `neverReleased` or `leaks`.
fn holds(all: &[HoldReport], place: &str, has_time: bool) -> String {
    let hold = |hold: &HoldReport| {
        let time = if has_time { format!(r#","heldMs":{}"#, ms(hold.held)) } else { String::new() };
        format!(r#"{{"lock":{},"{place}":{}{time}}}"#, hold.lock.json(), hold.holder.json())
    };
    format!("[{}]", all.iter().map(hold).collect::<Vec<_>>().join(","))
}

impl Report {
    /// As JSON.
    pub fn json(&self) -> String {
        let cycles: Vec<_> = self.lock_order.iter().map(|edges| Cycle(edges)).collect();
        format!(
            r#"{{"lockOrder":{},"sameClass":{},"deadlocks":{},"contention":{},"longHolds":{},"neverReleased":{},"leaks":{},"stuck":{},"waiting":{},"threadsWithoutDoctor":{}}}"#,
            list(&cycles),
            list(&self.same_class),
            list(&self.deadlocks),
            list(&self.contention),
            holds(&self.long_holds, "holder", true),
            holds(&self.never_released, "holder", false),
            holds(&self.leaks, "place", false),
            list(&self.stuck),
            list(&self.waiting),
            list(&self.threads_without),
        )
    }
}

impl State {
    /// The slices as JSON: times in microseconds since the first.
    pub fn trace_json(&self) -> String {
        let Some(start) = self.trace.slices.iter().map(|slice| slice.begin).min() else { return "[]".into() };
        let micros = |at: Instant| at.saturating_duration_since(start).as_secs_f64() * 1e6;
        let slice = |slice: &Slice| {
            let kind = if slice.kind == SliceKind::Wait { "wait" } else { "hold" };
            let place = self.place((slice.thread, slice.site)).json();
            let freed = slice.freed.map_or_else(
                || "null".into(),
                |(thread, at)| format!(r#"{{"threadId":{thread},"at":{}}}"#, micros(at)),
            );
            let (lock, begin, end) = (self.lock_name(slice.lock).json(), micros(slice.begin), micros(slice.end));
            format!(r#"{{"kind":"{kind}","lock":{lock},"place":{place},"begin":{begin},"end":{end},"freed":{freed}}}"#)
        };
        format!("[{}]", self.trace.slices.iter().map(slice).collect::<Vec<_>>().join(","))
    }
}
