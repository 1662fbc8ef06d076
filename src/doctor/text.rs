//! The report for people: what hangs first, then what could, then what is slow; names and places, in eighty columns.

use std::fmt::Write;
use std::time::Duration;

use super::State;
use super::report::{ContentionReport, DeadlockReport, HoldReport, LockName, Place, Report};
use super::stuck::Stuck;
use crate::agents::ThreadId;

const WIDTH: usize = 80;
/// So many of each kind are printed.
const MOST: usize = 10;
/// So many places of a lock that was waited for.
const MOST_PLACES: usize = 3;

fn lock(lock: &LockName) -> String {
    let kind = if lock.kind.is_empty() { "Lock" } else { &lock.kind };
    match (&lock.name, lock.byte_offset) {
        (Some(name), _) => format!("{kind} \"{name}\""),
        (None, Some(offset)) => format!("{kind} at byte {offset}"),
        (None, None) => kind.into(),
    }
}

fn time(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    match ms {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

fn count(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// Writes lines that fit.
struct Text {
    text: String,
    /// Is taken off the beginning of paths.
    folder: String,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.text.extend(line.chars().take(WIDTH));
        self.text.push('\n');
    }

    /// A line of a place: the innermost frame. A path that is too long loses its beginning.
    fn place(&mut self, before: &str, place: &Place, after: &str) {
        let head = format!("{before} thread {}", place.thread);
        let Some(frame) = place.stack.first() else {
            return self.line(&format!("{head}{after}  (place not known)"));
        };
        let (name, path) = match frame.rfind('(') {
            Some(at) => (&frame[..at], frame[at + 1..].trim_end_matches(')')),
            None => ("", frame.as_str()),
        };
        let path = path.strip_prefix("file://").unwrap_or(path);
        let path = path.strip_prefix(&self.folder).map_or(path, |path| path.trim_start_matches(['/', '\\']));
        let fixed = head.chars().count() + after.chars().count() + name.chars().count() + 4;
        let room = WIDTH.saturating_sub(fixed).max(20);
        let length = path.chars().count();
        let path = if length > room {
            format!("…{}", path.chars().skip(length + 1 - room).collect::<String>())
        } else {
            path.to_owned()
        };
        self.line(&format!("{head}  {name}({path}){after}"));
    }

    fn left_out(&mut self, all: usize) {
        if all > MOST {
            self.line(&format!("  ... and {} more", all - MOST));
        }
    }

    fn deadlock(&mut self, deadlock: &DeadlockReport) {
        let certainty = if deadlock.is_certain { "certain" } else { "possible" };
        let what = if deadlock.waits.len() == 1 {
            "somebody waits for what it holds itself".into()
        } else {
            format!("{} wait for each other", deadlock.waits.len())
        };
        self.line(&format!("DEADLOCK ({certainty}): {what}"));
        for wait in &deadlock.waits {
            self.line(&format!("  {}", lock(&wait.lock)));
            self.place("    held by  ", &wait.holder, "");
            self.place("    wanted by", &wait.waiter, &format!(", {}", time(wait.waited)));
        }
    }

    fn stuck(&mut self, stuck: &Stuck) {
        self.line(&format!("STUCK: {}, {}", lock(&stuck.lock), count(stuck.waiters.len(), "waits", "wait")));
        if let Some(holder) = &stuck.holder {
            self.place("    held by  ", holder, "");
        }
        for waiter in stuck.waiters.iter().take(MOST_PLACES) {
            self.place("    wanted by", waiter, "");
        }
        if stuck.waiters.len() > MOST_PLACES {
            self.line(&format!("    ... and {} more", stuck.waiters.len() - MOST_PLACES));
        }
    }

    fn hold(&mut self, title: &str, hold: &HoldReport, time: &str) {
        self.line(&format!("{title}: {}{time}", lock(&hold.lock)));
        self.place("    held by  ", &hold.holder, "");
    }

    fn contention(&mut self, contended: &ContentionReport) {
        let (waits, total, longest) =
            (count(contended.waits as usize, "wait", "waits"), time(contended.total), time(contended.longest));
        self.line(&format!("  {}: {waits}, {total} in all, {longest} at most", lock(&contended.lock)));
        for delay in contended.waiters.iter().take(MOST_PLACES) {
            self.place("    waited   ", &delay.place, &format!(", {}", time(delay.total)));
        }
        for delay in contended.unlockers.iter().take(MOST_PLACES) {
            self.place("    freed by ", &delay.place, &format!(", {}", time(delay.total)));
        }
    }
}

impl Report {
    /// For people. `folder` is taken off the beginning of paths.
    pub fn text(&self, folder: &str) -> String {
        let shown = self.without_repetitions();
        shown.write(Text { text: String::new(), folder: folder.to_owned() })
    }

    /// What is deadlocked is stuck too, and what is stuck is held for long.
    fn without_repetitions(&self) -> Self {
        let mut report = self.clone();
        let mut told: Vec<LockName> =
            report.deadlocks.iter().flat_map(|deadlock| &deadlock.waits).map(|wait| wait.lock.clone()).collect();
        report.stuck.retain(|stuck| !told.contains(&stuck.lock));
        told.extend(report.stuck.iter().map(|stuck| stuck.lock.clone()));
        report.long_holds.retain(|hold| !told.contains(&hold.lock));
        report
    }

    fn write(&self, mut text: Text) -> String {
        text.line(&format!("sablock doctor: {}", self.summary()));
        for deadlock in self.deadlocks.iter().take(MOST) {
            text.deadlock(deadlock);
        }
        text.left_out(self.deadlocks.len());
        for stuck in self.stuck.iter().take(MOST) {
            text.stuck(stuck);
        }
        text.left_out(self.stuck.len());
        for cycle in self.lock_order.iter().take(MOST) {
            text.line("LOCK ORDER: these deadlock if they run at the same time");
            for edge in cycle {
                text.line(&format!("  {}, then {}", lock(&edge.from), lock(&edge.to)));
                text.place("    locked   ", &edge.held, "");
                text.place("    and then ", &edge.locked, "");
            }
        }
        text.left_out(self.lock_order.len());
        for hold in self.long_holds.iter().take(MOST) {
            text.hold("LONG HOLD", hold, &format!(", {}", time(hold.held)));
        }
        text.left_out(self.long_holds.len());
        for hold in self.never_released.iter().take(MOST) {
            text.hold("NEVER RELEASED", hold, ", and its thread has ended");
        }
        text.left_out(self.never_released.len());
        for hold in self.leaks.iter().take(MOST) {
            text.hold("LEAK", hold, ", whose guard was collected while it held");
        }
        text.left_out(self.leaks.len());
        if !self.contention.is_empty() {
            text.line("CONTENTION, the longest waits first");
            for contended in self.contention.iter().take(MOST) {
                text.contention(contended);
            }
            text.left_out(self.contention.len());
        }
        if !self.threads_without.is_empty() {
            let threads: Vec<_> = self.threads_without.iter().map(ThreadId::to_string).collect();
            text.line(&format!("Threads without the doctor: {}", threads.join(", ")));
        }
        text.text
    }

    fn summary(&self) -> String {
        let counts = [
            (self.deadlocks.len(), "deadlock", "deadlocks"),
            (self.stuck.len(), "stuck lock", "stuck locks"),
            (self.lock_order.len(), "lock order that can deadlock", "lock orders that can deadlock"),
            (self.long_holds.len(), "long hold", "long holds"),
            (self.never_released.len(), "hold never released", "holds never released"),
            (self.leaks.len(), "leaked guard", "leaked guards"),
        ];
        let mut all = String::new();
        for (number, one, many) in counts.into_iter().filter(|(number, ..)| *number > 0) {
            // Writing to a string does not fail.
            let _ = write!(all, "{}{}", if all.is_empty() { "" } else { ", " }, count(number, one, many));
        }
        if all.is_empty() { "no deadlocks, and no orders that could".into() } else { all }
    }
}

impl State {
    /// The report for people, if there is more to report than when it was asked for last.
    pub fn text_once(&mut self, living: &[ThreadId]) -> Option<String> {
        let report = self.report(living);
        let problems = report.problems();
        if problems <= self.printed {
            return None;
        }
        self.printed = problems;
        Some(report.text(&self.folder))
    }

    /// The report for people.
    pub fn text(&self, living: &[ThreadId]) -> String {
        self.report(living).text(&self.folder)
    }
}
