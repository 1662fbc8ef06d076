//! The report for people: what hangs first, then what could, then what is slow; names and places, in eighty columns.

use std::fmt::Write;
use std::time::Duration;

use super::contention::Contended;
use super::holds::SuspectHold;
use super::names::{Interned, LockId, ThreadSite};
use super::report::{Pending, Report};
use super::signals;
use super::state::Knowledge;
use super::waits::{Deadlock, Stuck};
use crate::agents::ThreadId;

const WIDTH: usize = 80;
/// So many of each kind are printed.
const MOST: usize = 10;
/// Shorter waits are nothing to print.
const LONG_WAIT: Duration = Duration::from_secs(1);
/// So many places of a lock that was waited for.
const MOST_PLACES: usize = 3;

/// What a terminal would obey, or what nobody would see, is escaped.
fn visible(text: &str) -> String {
    let is_hidden = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// The columns that a terminal gives to a character.
fn columns(character: char) -> usize {
    match character as u32 {
        0x0300..=0x036f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// As many of the characters as there is room for.
fn fitting(characters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += columns(*character);
            used <= room
        })
        .collect()
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
struct Text<'a> {
    text: String,
    names: &'a Interned,
    /// Is taken off the beginning of paths.
    folder: &'a str,
}

impl Text<'_> {
    fn lock(&self, id: LockId) -> String {
        let Some(lock) = self.names.get(id) else { return "Lock".into() };
        match (&lock.name, lock.byte_offset) {
            (Some(name), None) if lock.is_outside() => format!("lock \"{}\" of the machine", visible(name)),
            (Some(name), None) => format!("lock \"{}\"", visible(name)),
            (Some(name), _) => format!("{} \"{}\"", lock.kind, visible(name)),
            (None, Some(offset)) => format!("{} at byte {offset}", lock.kind),
            (None, None) => lock.kind.clone(),
        }
    }

    fn line(&mut self, line: &str) {
        self.named(line, "");
    }

    /// A line that ends in figures, which stay: a name before them that is too long is cut.
    fn named(&mut self, line: &str, figures: &str) {
        let room = WIDTH.saturating_sub(width(figures));
        if width(line) > room {
            self.text.extend(fitting(line.chars(), room.saturating_sub(1)));
            self.text.push('…');
        } else {
            self.text.push_str(line);
        }
        self.text.push_str(figures);
        self.text.push('\n');
    }

    /// A line of a place: the innermost frame. A path that is too long loses its beginning.
    fn place(&mut self, before: &str, (thread, site): ThreadSite, after: &str) {
        let head = format!("{before} thread {thread}");
        let Some(frame) = self.names.stack(site).first() else {
            return self.named(&format!("{head}  (place not known)"), after);
        };
        let (name, path) = match frame.rfind('(') {
            Some(at) => (&frame[..at], frame[at + 1..].trim_end_matches(')')),
            None => ("", frame.as_str()),
        };
        let path = path.strip_prefix("file://").unwrap_or(path);
        let (name, path) = (visible(name), visible(self.within(path)));
        let fixed = width(&head) + width(after) + width(&name) + 4;
        let room = WIDTH.saturating_sub(fixed).max(20);
        let path = if width(&path) > room {
            let end: String = fitting(path.chars().rev(), room - 1).into_iter().rev().collect();
            format!("…{end}")
        } else {
            path
        };
        self.named(&format!("{head}  {name}({path})"), after);
    }

    /// The path as seen from the folder.
    fn within<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(self.folder).map_or(path, |path| path.trim_start_matches(['/', '\\']))
    }

    fn left_out(&mut self, all: usize) {
        if all > MOST {
            self.line(&format!("  ... and {} more", all - MOST));
        }
    }

    fn deadlock(&mut self, deadlock: &Deadlock) {
        let certainty = if deadlock.is_certain { "certain" } else { "likely" };
        let what = if deadlock.waits.len() == 1 {
            "somebody waits for what it holds itself".into()
        } else {
            format!("{} wait for each other", deadlock.waits.len())
        };
        self.line(&format!("DEADLOCK ({certainty}): {what}"));
        for wait in &deadlock.waits {
            self.line(&format!("  {}", self.lock(wait.lock)));
            self.place("    held by  ", wait.holder, "");
            self.place("    wanted by", wait.waiter, &format!(", {}", time(wait.waited)));
        }
        if !deadlock.is_certain {
            self.line("  Not certain: code that waits for none of these may still unlock one.");
        }
    }

    fn stuck(&mut self, stuck: &Stuck) {
        self.named(
            &format!("STUCK: {}", self.lock(stuck.lock)),
            &format!(", {}", count(stuck.waiters.len(), "waits", "wait")),
        );
        self.places("    held by  ", &stuck.holders);
        self.places("    wanted by", &stuck.waiters);
    }

    fn places(&mut self, before: &str, places: &[ThreadSite]) {
        for place in places.iter().take(MOST_PLACES) {
            self.place(before, *place, "");
        }
        if places.len() > MOST_PLACES {
            self.line(&format!("    ... and {} more", places.len() - MOST_PLACES));
        }
    }

    fn pending(&mut self, wait: &Pending) {
        self.named(&format!("WAITING: {}", self.lock(wait.lock)), &format!(", {}", time(wait.waited)));
        if let Some((pid, held)) = wait.outside {
            self.line(&format!("    held by   process {pid}, for {}", time(held)));
        }
        self.places("    held by  ", &wait.holders);
        self.place("    wanted by", wait.waiter, "");
    }

    fn hold(&mut self, title: &str, hold: &SuspectHold, time: &str) {
        self.named(&format!("{title}: {}", self.lock(hold.lock)), time);
        self.place("    held by  ", hold.place, "");
    }

    fn contention(&mut self, contended: &Contended) {
        let (waits, total, longest) =
            (count(contended.all.waits as usize, "wait", "waits"), time(contended.all.total), time(contended.longest));
        let name = self.lock(contended.lock);
        self.named(&format!("  {name}"), &format!(": {waits}, {total} in all, {longest} at most"));
        for (before, delays) in [("    waited   ", &contended.waiters), ("    freed by ", &contended.unlockers)] {
            for (place, delay) in Contended::sorted(delays).into_iter().take(MOST_PLACES) {
                self.place(before, place, &format!(", {}", time(delay.total)));
            }
        }
    }
}

impl Report<'_> {
    /// For people. `folder` is taken off the beginning of paths.
    pub fn text(mut self, folder: &str) -> String {
        self.leave_out_repetitions();
        let mut text = Text { text: String::new(), names: self.names, folder };
        self.write(&mut text);
        text.text
    }

    /// What is deadlocked is stuck too, and what is stuck is held for long.
    fn leave_out_repetitions(&mut self) {
        let waits = self.deadlocks.iter().flat_map(|deadlock| &deadlock.waits);
        let mut reported: Vec<LockId> = waits.map(|wait| wait.lock).collect();
        self.stuck.retain(|stuck| !reported.contains(&stuck.lock));
        reported.extend(self.stuck.iter().map(|stuck| stuck.lock));
        self.waiting.retain(|wait| wait.waited >= LONG_WAIT && !reported.contains(&wait.lock));
        self.long_holds.retain(|hold| !reported.contains(&hold.lock));
    }

    fn write(&self, text: &mut Text) {
        text.line(&format!("sablock doctor: {}", self.summary()));
        for deadlock in self.deadlocks.iter().take(MOST) {
            text.deadlock(deadlock);
        }
        text.left_out(self.deadlocks.len());
        for stuck in self.stuck.iter().take(MOST) {
            text.stuck(stuck);
        }
        text.left_out(self.stuck.len());
        for wait in self.waiting.iter().take(MOST) {
            text.pending(wait);
        }
        text.left_out(self.waiting.len());
        for cycle in self.lock_order.iter().take(MOST) {
            text.line("LOCK ORDER: these deadlock if they run at the same time");
            for edge in cycle {
                text.line(&format!("  {}, then {}", text.lock(edge.from), text.lock(edge.to)));
                text.place("    locked   ", (edge.thread, edge.held), "");
                text.place("    and then ", (edge.thread, edge.locked), "");
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
        for file in self.bundles {
            text.line(&format!("BUNDLE: sablock is part of {}", visible(text.within(file))));
            text.line("  Its calls may be shown as yours. Leave it out of the bundle, as external:");
            text.line("  for esbuild --external:sablock; others in the guide on bundling");
        }
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
        let waits = match self.pending {
            0 => "nothing waits".into(),
            pending => format!("{} now", count(pending, "wait", "waits")),
        };
        for (number, one, many) in counts.into_iter().filter(|(number, ..)| *number > 0) {
            // Writing to a string does not fail.
            let _ = write!(all, "{}{}", if all.is_empty() { "" } else { ", " }, count(number, one, many));
        }
        if all.is_empty() { format!("no deadlocks, and no orders that could; {waits}") } else { all }
    }
}

impl Knowledge {
    /// The report for people, if there is more to report than when it was asked for last.
    pub fn text_once(&mut self, living: &[ThreadId]) -> Option<String> {
        let report = self.report(living);
        let problems = report.problems();
        if problems <= self.printed {
            return None;
        }
        let text = report.text(&self.folder);
        self.printed = problems;
        Some(text)
    }

    /// As `text_once`, at the end of the process: a signal may have led to it that the watchdog has not seen yet.
    pub fn last_text(&mut self, living: &[ThreadId]) -> Option<String> {
        match signals::take().last() {
            Some(signal) => self.text_on(*signal),
            None => self.text_once(living),
        }
    }

    /// The report for people when a signal comes: whenever it is asked for, else if there is more to report, or somebody waits.
    pub(super) fn text_on(&mut self, signal: i32) -> Option<String> {
        let is_wanted = signals::asks(signal) || !self.waits.is_empty();
        if is_wanted { Some(self.text(&[])) } else { self.text_once(&[]) }
    }

    /// The report for people.
    pub fn text(&mut self, living: &[ThreadId]) -> String {
        let report = self.report(living);
        let problems = report.problems();
        let text = report.text(&self.folder);
        self.printed = problems;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stay_and_wide_letters_are_two_columns() {
        let names = Interned::default();
        let mut text = Text { text: String::new(), names: &names, folder: "" };
        text.named(&"名".repeat(60), ", 12 ms");
        let line = text.text.trim_end();
        assert!(line.ends_with("…, 12 ms"), "{line}");
        assert!(width(line) <= WIDTH);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
    }
}
