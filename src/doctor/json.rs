//! The report as JSON, which JS parses: the shape of `DoctorReport` in `types/entries/doctor.d.ts`.

use std::time::{Duration, Instant};

use super::contention::{Contended, Delay};
use super::holds::SuspectHold;
use super::names::{ENDED, Interned, Lock, LockId, SiteId, ThreadSite};
use super::order::Edge;
use super::report::{Pending, Report};
use super::state::Knowledge;
use super::trace::Slice;
use super::waits::{Deadlock, Outside, Stuck, WaitStep};
use crate::agents::ThreadId;
use crate::sync;

/// A value that becomes a JSON text.
trait Json {
    fn json(&self, names: &Interned) -> String;
}

/// The text of an object with these members.
macro_rules! object {
    ($names:expr, $($key:ident: $value:expr),+ $(,)?) => {
        format!("{{{}}}", [$(format!("\"{}\":{}", stringify!($key), $value.json($names))),+].join(","))
    };
}

/// A type, a value of it and the names, and its text.
macro_rules! texts {
    ($($type:ty, $of:pat, $names:pat => $text:expr;)+) => {
        $(impl Json for $type {
            fn json(&self, $names: &Interned) -> String {
                let $of = self;
                $text
            }
        })+
    };
}

struct Named(LockId);
struct Stack(SiteId);
/// A text that is JSON already.
struct Text(String);

texts! {
    &str, text, _ => quoted(text);
    bool, value, _ => value.to_string();
    u32, number, _ => number.to_string();
    u64, number, _ => number.to_string();
    f64, number, _ => number.to_string();
    Duration, time, names => (time.as_secs_f64() * 1e3).json(names);
    String, text, _ => quoted(text);
    Text, text, _ => text.0.clone();
    Named, lock, names => names.get(lock.0).unwrap_or(&Lock::default()).json(names);
    Stack, site, names => names.stack(site.0).json(names);
    Lock, of, names => object!(names, name: of.name, kind: of.kind, byteOffset: of.byte_offset);
    ThreadSite, (thread, site), names => object!(
        names, threadId: if *thread == ENDED { -1.0 } else { f64::from(*thread) }, stack: Stack(*site)
    );
    Edge, of, names => object!(
        names, from: Named(of.from), to: Named(of.to), held: (of.thread, of.held), locked: (of.thread, of.locked)
    );
    Outside, of, names => object!(names, clientId: of.client, pid: of.pid, heldMs: of.since.map(sync::since));
    Pending, of, names => object!(
        names, lock: Named(of.lock), waiter: of.waiter, waitedMs: of.waited, holders: of.holders, outside: of.outside
    );
    WaitStep, of, names => object!(
        names, lock: Named(of.lock), holder: of.holder, waiter: of.waiter, waitedMs: of.waited
    );
    Deadlock, of, names => object!(names, certainty: of.certainty(), waits: of.waits);
    (ThreadSite, Delay), (place, delay), names => object!(
        names, place: place, waits: delay.waits, totalMs: delay.total
    );
    Contended, of, names => object!(
        names, lock: Named(of.lock), waits: of.all.waits, totalMs: of.all.total, maxMs: of.longest,
        waiters: Contended::sorted(&of.waiters), unlockers: Contended::sorted(&of.unlockers)
    );
    Stuck, of, names => object!(
        names, lock: Named(of.lock), holders: of.holders, outside: of.outside, waiters: of.waiters
    );
    (ThreadId, f64), (thread, at), names => object!(names, threadId: thread, at: at);
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        other if (other as u32) < 0x20 => format!("\\u{:04x}", other as u32),
        other => other.into(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

impl<T: Json> Json for Option<T> {
    fn json(&self, names: &Interned) -> String {
        self.as_ref().map_or_else(|| "null".into(), |value| value.json(names))
    }
}

impl<T: Json> Json for [T] {
    fn json(&self, names: &Interned) -> String {
        list(self, |item| item.json(names)).0
    }
}

impl<T: Json> Json for &T {
    fn json(&self, names: &Interned) -> String {
        (*self).json(names)
    }
}

fn list<T>(items: &[T], json: impl Fn(&T) -> String) -> Text {
    Text(format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(",")))
}

impl Report<'_> {
    /// As JSON.
    pub fn json(&self) -> String {
        let names = self.names;
        let hold = |of: &SuspectHold| object!(names, lock: Named(of.lock), holder: of.place);
        let long_hold = |of: &SuspectHold| object!(names, lock: Named(of.lock), holder: of.place, heldMs: of.held);
        let leak = |of: &SuspectHold| object!(names, lock: Named(of.lock), place: of.place);
        object!(
            names,
            lockOrder: list(&self.lock_order, |edges| object!(names, edges: edges)),
            sameClass: self.same_class,
            deadlocks: self.deadlocks,
            contention: self.contention,
            longHolds: list(&self.long_holds, long_hold),
            neverReleased: list(self.never_released, hold),
            leaks: list(self.leaks, leak),
            stuck: self.stuck,
            waiting: self.waiting,
            threadsWithoutDoctor: self.threads_without,
            bundles: self.bundles,
        )
    }
}

impl Knowledge {
    /// A deadlock that was just found.
    pub fn deadlock_json(&self, deadlock: &Deadlock, is_reported: bool, is_newest: bool) -> String {
        let (certainty, waits) = (deadlock.certainty(), &deadlock.waits);
        object!(&self.names, certainty: certainty, waits: waits, isTold: is_reported, isNewest: is_newest)
    }

    /// The slices as JSON: times in microseconds since the first.
    pub fn trace_json(&self) -> String {
        let (names, slices) = (&self.names, &self.trace.slices);
        let Some(start) = slices.iter().map(|slice| slice.begin).min() else { return "[]".into() };
        let micros = |at: Instant| at.saturating_duration_since(start).as_secs_f64() * 1e6;
        let slice = |slice: &Slice| {
            object!(
                names,
                kind: slice.kind,
                lock: Named(slice.lock),
                place: slice.place,
                begin: micros(slice.begin),
                end: micros(slice.end),
                freed: slice.freed.map(|unlock| (unlock.place.0, micros(unlock.at))),
            )
        };
        list(slices, slice).0
    }
}
