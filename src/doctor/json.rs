//! The report as JSON, which JS parses: the shape of `DoctorReport` in `doctor.d.ts`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::contention::{Contended, Delay};
use super::holds::SuspectHold;
use super::names::{Interned, LockId, SiteId, ThreadSite};
use super::order::Edge;
use super::report::{Pending, Report};
use super::state::Knowledge;
use super::trace::{Slice, SliceKind};
use super::waits::{Deadlock, Stuck, WaitStep};

/// What becomes a JSON text.
trait Json {
    fn json(&self, names: &Interned) -> String;
}

fn list<T>(items: &[T], json: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(","))
}

impl<T: Json> Json for [T] {
    fn json(&self, names: &Interned) -> String {
        list(self, |item| item.json(names))
    }
}

impl<T: Json> Json for &T {
    fn json(&self, names: &Interned) -> String {
        (*self).json(names)
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn string(of: &str) -> String {
    let mut text = String::with_capacity(of.len() + 2);
    text.push('"');
    for character in of.chars() {
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

fn or_null<T>(value: Option<T>, json: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "null".into(), json)
}

impl Json for ThreadSite {
    fn json(&self, names: &Interned) -> String {
        format!(r#"{{"threadId":{},"stack":{}}}"#, self.0, list(names.stack(self.1), |frame| string(frame)))
    }
}

fn lock(id: LockId, names: &Interned) -> String {
    let known = names.get(id);
    let name = or_null(known.and_then(|lock| lock.name.as_deref()), string);
    let offset = or_null(known.and_then(|lock| lock.byte_offset), |offset| offset.to_string());
    format!(r#"{{"name":{name},"kind":{},"byteOffset":{offset}}}"#, string(known.map_or("", |lock| &lock.kind)))
}

impl Json for Edge {
    fn json(&self, names: &Interned) -> String {
        let place = |site: SiteId| (self.thread, site).json(names);
        let (from, to, held, locked) =
            (lock(self.from, names), lock(self.to, names), place(self.held), place(self.locked));
        format!(r#"{{"from":{from},"to":{to},"held":{held},"locked":{locked}}}"#)
    }
}

impl Json for Pending {
    fn json(&self, names: &Interned) -> String {
        let (lock, waiter, holders) = (lock(self.lock, names), self.waiter.json(names), self.holders.json(names));
        let outside = or_null(self.outside, |(pid, held)| format!(r#"{{"pid":{pid},"heldMs":{}}}"#, ms(held)));
        let waited = ms(self.waited);
        format!(r#"{{"lock":{lock},"waiter":{waiter},"waitedMs":{waited},"holders":{holders},"outside":{outside}}}"#)
    }
}

impl Json for WaitStep {
    fn json(&self, names: &Interned) -> String {
        let (lock, holder, waiter) = (lock(self.lock, names), self.holder.json(names), self.waiter.json(names));
        format!(r#"{{"lock":{lock},"holder":{holder},"waiter":{waiter},"waitedMs":{}}}"#, ms(self.waited))
    }
}

impl Json for Deadlock {
    fn json(&self, names: &Interned) -> String {
        let certainty = if self.is_certain { "certain" } else { "likely" };
        format!(r#"{{"certainty":"{certainty}","waits":{}}}"#, self.waits.json(names))
    }
}

impl Json for (ThreadSite, Delay) {
    fn json(&self, names: &Interned) -> String {
        let (place, delay) = self;
        format!(r#"{{"place":{},"waits":{},"totalMs":{}}}"#, place.json(names), delay.waits, ms(delay.total))
    }
}

impl Json for Contended {
    fn json(&self, names: &Interned) -> String {
        let [waiters, unlockers] = [&self.waiters, &self.unlockers].map(|delays| Self::sorted(delays).json(names));
        let (lock, waits, total, longest) =
            (lock(self.lock, names), self.all.waits, ms(self.all.total), ms(self.longest));
        format!(
            r#"{{"lock":{lock},"waits":{waits},"totalMs":{total},"maxMs":{longest},"waiters":{waiters},"unlockers":{unlockers}}}"#
        )
    }
}

impl Json for Stuck {
    fn json(&self, names: &Interned) -> String {
        let (lock, holders, waiters) = (lock(self.lock, names), self.holders.json(names), self.waiters.json(names));
        format!(r#"{{"lock":{lock},"holders":{holders},"waiters":{waiters}}}"#)
    }
}

impl Report<'_> {
    /// Holds, as members of `longHolds`, `neverReleased` or `leaks`.
    fn holds(&self, all: &[SuspectHold], place: &str, has_time: bool) -> String {
        list(all, |hold| {
            let time = if has_time { format!(r#","heldMs":{}"#, ms(hold.held)) } else { String::new() };
            format!(r#"{{"lock":{},"{place}":{}{time}}}"#, lock(hold.lock, self.names), hold.place.json(self.names))
        })
    }

    /// As JSON.
    pub fn json(&self) -> String {
        let names = self.names;
        format!(
            r#"{{"lockOrder":{},"sameClass":{},"deadlocks":{},"contention":{},"longHolds":{},"neverReleased":{},"leaks":{},"stuck":{},"waiting":{},"threadsWithoutDoctor":{},"bundles":{}}}"#,
            list(&self.lock_order, |edges| format!(r#"{{"edges":{}}}"#, edges.json(names))),
            self.same_class.json(names),
            self.deadlocks.json(names),
            self.contention.json(names),
            self.holds(&self.long_holds, "holder", true),
            self.holds(self.never_released, "holder", false),
            self.holds(self.leaks, "place", false),
            self.stuck.json(names),
            self.waiting.json(names),
            list(&self.threads_without, u32::to_string),
            list(self.bundles, |file| string(file)),
        )
    }
}

impl Knowledge {
    /// A deadlock that was just found.
    pub fn deadlock_json(&self, deadlock: &Deadlock, is_reported: bool, is_newest: bool) -> String {
        let json = deadlock.json(&self.names);
        format!(r#"{},"isTold":{is_reported},"isNewest":{is_newest}}}"#, &json[..json.len() - 1])
    }

    /// The slices as JSON: times in microseconds since the first.
    pub fn trace_json(&self) -> String {
        let Some(start) = self.trace.slices.iter().map(|slice| slice.begin).min() else { return "[]".into() };
        let micros = |at: Instant| at.saturating_duration_since(start).as_secs_f64() * 1e6;
        let slice = |slice: &Slice| {
            let kind = if slice.kind == SliceKind::TrackedWait { "wait" } else { "hold" };
            let place = (slice.thread, slice.site).json(&self.names);
            let freed = or_null(slice.freed, |(thread, at)| format!(r#"{{"threadId":{thread},"at":{}}}"#, micros(at)));
            let (lock, begin, end) = (lock(slice.lock, &self.names), micros(slice.begin), micros(slice.end));
            format!(r#"{{"kind":"{kind}","lock":{lock},"place":{place},"begin":{begin},"end":{end},"freed":{freed}}}"#)
        };
        list(&self.trace.slices, slice)
    }
}
