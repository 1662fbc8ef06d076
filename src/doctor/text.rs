//! The report for people: what hangs first, then what could, then what is slow; names and places, in eighty columns.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::columns::{beginning, count, ending, time, visible};
use super::contention::Contended;
use super::holds::SuspectHold;
use super::names::{ENDED, Interned, LockId, ThreadSite};
use super::order::Edge;
use super::report::{Pending, Report};
use super::signals;
use super::state::Knowledge;
use super::waits::{Deadlock, Outside, Stuck};
use crate::agents::ThreadId;
use crate::clients::is_of_store;
use crate::sync;

const WIDTH: usize = 80;
/// The number of each kind that are printed.
const MOST: usize = 10;
/// Shorter waits are only printed for whoever asks.
const LONG_WAIT: Duration = Duration::from_secs(1);
/// The number of places that are printed of a lock that was waited for.
const MOST_PLACES: usize = 3;

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
            (Some(name), None) if lock.is_outside() => {
                let keeper = if is_of_store(lock.address as u32) { "store" } else { "machine" };
                format!("lock \"{}\" of the {keeper}", visible(name))
            }
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
        self.text.push_str(&beginning(line, WIDTH.saturating_sub(figures.width())));
        self.text.push_str(figures);
        self.text.push('\n');
    }

    /// A line of a place: the innermost frame. What is too long loses the end of the name, and then the beginning of the path: never
    /// the line.
    fn place(&mut self, before: &str, (thread, site): ThreadSite, after: &str) {
        let who = if thread == ENDED { "ended threads".into() } else { format!("thread {thread}") };
        let head = format!("{before} {who}");
        let Some(frame) = self.names.stack(site).first() else {
            return self.named(&format!("{head}  (place not known)"), after);
        };
        let (name, path) = frame.split_once(" (").unwrap_or(("", frame));
        let path = path.strip_suffix(')').unwrap_or(path);
        let path = visible(self.within(path.strip_prefix("file://").unwrap_or(path)));
        let room = WIDTH.saturating_sub(head.width() + after.width() + 5);
        let name = beginning(&visible(name), room.saturating_sub(path.width()).max(room / 2));
        let path = ending(&path, room.saturating_sub(name.width()));
        self.named(&format!("{head}  {name} ({path})"), after);
    }

    /// The path as seen from the folder.
    fn within<'p>(&self, path: &'p str) -> &'p str {
        let inside = path.strip_prefix(self.folder).and_then(|rest| rest.strip_prefix(['/', '\\']));
        inside.unwrap_or(path)
    }

    /// The first of them, and how many are left out.
    fn first<T>(&mut self, all: &[T], most: usize, indent: &str, write: impl Fn(&mut Self, &T)) {
        all.iter().take(most).for_each(|item| write(self, item));
        if all.len() > most {
            self.line(&format!("{indent}... and {} more", all.len() - most));
        }
    }

    fn list<T>(&mut self, all: &[T], write: impl Fn(&mut Self, &T)) {
        self.first(all, MOST, "  ", write);
    }

    fn deadlock(&mut self, deadlock: &Deadlock) {
        let what = if deadlock.waits.len() == 1 {
            "somebody waits for what it holds itself".into()
        } else {
            format!("{} wait for each other", deadlock.waits.len())
        };
        self.line(&format!("DEADLOCK ({}): {what}", deadlock.certainty()));
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
            &format!(", {}", count(stuck.waiters.len(), "waiter", "waiters")),
        );
        if let Some(outside) = &stuck.outside {
            self.outside(outside);
        }
        self.places("    held by  ", &stuck.holders);
        self.places("    wanted by", &stuck.waiters);
    }

    fn outside(&mut self, Outside { client, pid, since }: &Outside) {
        let who = match (client, pid) {
            (Some(client), _) => visible(client),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => "another process".into(),
        };
        let since = since.map_or_else(String::new, |since| format!(", for {}", time(sync::since(since))));
        self.named(&format!("    held by   {who}"), &since);
    }

    fn places(&mut self, before: &str, places: &[ThreadSite]) {
        self.first(places, MOST_PLACES, "    ", |text, place| text.place(before, *place, ""));
    }

    fn pending(&mut self, wait: &Pending) {
        self.named(&format!("WAITING: {}", self.lock(wait.lock)), &format!(", {}", time(wait.waited)));
        if let Some(outside) = &wait.outside {
            self.outside(outside);
        }
        self.places("    held by  ", &wait.holders);
        self.place("    wanted by", wait.waiter, "");
    }

    fn cycle(&mut self, cycle: &[Edge]) {
        self.line("LOCK ORDER: these deadlock if they run at the same time");
        for edge in cycle {
            self.line(&format!("  {}, then {}", self.lock(edge.from), self.lock(edge.to)));
            self.place("    locked   ", (edge.thread, edge.held), "");
            self.place("    and then ", (edge.thread, edge.locked), "");
        }
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
    /// For people. `folder` is taken off the beginning of paths; waits that are shorter than `shortest` are left out.
    fn text(mut self, folder: &str, shortest: Duration) -> String {
        self.leave_out_repetitions();
        self.waiting.retain(|wait| wait.waited >= shortest);
        let mut text = Text { text: String::new(), names: self.names, folder };
        self.write(&mut text);
        text.text
    }

    /// A deadlocked lock is stuck too, and a stuck one is held for long: each is printed once.
    fn leave_out_repetitions(&mut self) {
        let waits = self.deadlocks.iter().flat_map(|deadlock| &deadlock.waits);
        let mut reported: Vec<LockId> = waits.map(|wait| wait.lock).collect();
        self.stuck.retain(|stuck| !reported.contains(&stuck.lock));
        reported.extend(self.stuck.iter().map(|stuck| stuck.lock));
        self.waiting.retain(|wait| !reported.contains(&wait.lock));
        self.long_holds.retain(|hold| !reported.contains(&hold.lock));
    }

    fn write(&self, text: &mut Text) {
        text.line(&format!("sablock doctor: {}", self.summary()));
        text.list(&self.deadlocks, |text, deadlock| text.deadlock(deadlock));
        text.list(&self.stuck, |text, stuck| text.stuck(stuck));
        text.list(&self.waiting, Text::pending);
        text.list(&self.lock_order, |text, cycle| text.cycle(cycle));
        text.list(&self.long_holds, |text, hold| text.hold("LONG HOLD", hold, &format!(", {}", time(hold.held))));
        text.list(self.never_released, |text, hold| text.hold("NEVER RELEASED", hold, ", and its thread has ended"));
        text.list(self.leaks, |text, hold| text.hold("LEAK", hold, ", whose guard was collected while it held"));
        if !self.contention.is_empty() {
            text.line("CONTENTION, the longest waits first");
            text.list(&self.contention, |text, contended| text.contention(contended));
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
        let found = counts.into_iter().filter(|(number, ..)| *number > 0);
        let all: Vec<_> = found.map(|(number, one, many)| count(number, one, many)).collect();
        let waits = match self.pending {
            0 => "nothing waits".into(),
            pending => format!("{} now", count(pending, "wait", "waits")),
        };
        if all.is_empty() { format!("no deadlocks, and no orders that could; {waits}") } else { all.join(", ") }
    }
}

impl Knowledge {
    /// The report for people, if there is more to report than when it was asked for last.
    pub fn text_once(&mut self, living: &[ThreadId]) -> Option<String> {
        let report = self.report(living);
        let is_new = |hold: &SuspectHold| !self.printed_holds.contains(&self.kind_of(hold));
        let is_more = report.problems() > self.printed || report.long_holds.iter().any(is_new);
        is_more.then(|| self.text(living, LONG_WAIT))
    }

    /// As `text_once`, at the end of the process: a signal may have led to it that the watchdog has not seen yet.
    pub fn last_text(&mut self, living: &[ThreadId]) -> Option<String> {
        match signals::take().last() {
            Some(signal) => self.text_on(*signal),
            None => self.text_once(living),
        }
    }

    /// As `last_text`, once no code of the process runs any more, if its main thread did not come to it.
    pub fn text_left(&mut self, living: &[ThreadId]) -> Option<String> {
        if self.take_end() { self.last_text(living) } else { None }
    }

    /// The report for people when a signal comes: whenever it is asked for, else if there is more to report, or somebody waits.
    pub(super) fn text_on(&mut self, signal: i32) -> Option<String> {
        if signals::asks(signal) {
            Some(self.asked_text(&[]))
        } else if !self.waits.is_empty() {
            Some(self.news())
        } else {
            self.text_once(&[])
        }
    }

    /// The report for people that the watchdog prints by itself.
    pub(super) fn news(&mut self) -> String {
        self.text(&[], LONG_WAIT)
    }

    /// The report for people, when somebody asks for it: with all waits.
    pub fn asked_text(&mut self, living: &[ThreadId]) -> String {
        self.text(living, Duration::ZERO)
    }

    fn text(&mut self, living: &[ThreadId], shortest: Duration) -> String {
        let report = self.report(living);
        let problems = report.problems();
        let holds: Vec<_> = report.long_holds.iter().map(|hold| self.kind_of(hold)).collect();
        let text = report.text(&self.folder, shortest);
        self.printed = problems;
        self.printed_holds.extend(holds);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds::HoldTable;
    use super::*;

    #[test]
    fn figures_stay_and_wide_letters_are_two_columns() {
        let names = Interned::default();
        let mut text = Text { text: String::new(), names: &names, folder: "" };
        text.named(&"名".repeat(60), ", 12 ms");
        let line = text.text.trim_end();
        assert!(line.ends_with("…, 12 ms"), "{line}");
        assert!(line.width() <= WIDTH);
        // Marks above letters take no column, in any script.
        let pointed = "ש\u{5c1}".repeat(60);
        assert_eq!(beginning(&pointed, 60), pointed);
    }

    #[test]
    fn a_place_that_is_too_long_keeps_its_line() {
        for (name, folders) in [("f".repeat(90), 1), ("f".into(), 20), ("f".repeat(90), 20), ("f".repeat(30), 20)] {
            let mut names = Interned::default();
            let site = names.site(vec![format!("{name} ({}app.js:123:45)", "folder/".repeat(folders))]);
            let mut text = Text { text: String::new(), names: &names, folder: "" };
            text.place("    wanted by", (7, site), ", 12 ms");
            let line = text.text.trim_end();
            assert!(line.ends_with("/app.js:123:45), 12 ms"), "{line}");
            assert!(line.contains("thread 7  f"), "{line}");
            assert!(line.width() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn a_folder_may_have_any_name_and_another_that_begins_with_it_is_another() {
        let mut names = Interned::default();
        for (file, shown) in
            [("/My Program (2)/app.js", "app.js"), ("/My Program (2)-b/app.js", "/My Program (2)-b/app.js")]
        {
            let site = names.site(vec![format!("main ({file}:1:2)")]);
            let mut text = Text { text: String::new(), names: &names, folder: "/My Program (2)" };
            text.place("    held by  ", (0, site), "");
            assert_eq!(text.text, format!("    held by   thread 0  main ({shown}:1:2)\n"));
        }
    }

    #[test]
    fn what_was_printed_is_printed_again_only_with_something_new() {
        let mut state = Knowledge::default();
        state.options.long_hold = Duration::from_nanos(1);
        let slot = |serial: f64| HoldTable::with([serial, 0.0, 1.0, 0.0, 1.0, 8.0]);
        let look = |state: &mut Knowledge| {
            state.tick();
            std::thread::sleep(Duration::from_millis(1));
        };
        state.tables.insert(1, slot(1.0));
        look(&mut state);
        assert!(state.text_once(&[]).is_some_and(|text| text.contains("1 long hold")));
        // The next one of the same place, too.
        state.tables.insert(1, slot(2.0));
        look(&mut state);
        assert!(state.text_once(&[]).is_none());
        state.tables.clear();
        assert!(state.text_once(&[]).is_none());
        // As many as before, but not the same.
        state.note_leak(0, 1, 2);
        assert!(state.text_once(&[]).is_some_and(|text| text.contains("1 leaked guard")));
        assert!(state.text_once(&[]).is_none());
        // Fewer, as once an order is forgotten with its locks: the next is new.
        state.leaks.clear();
        assert!(!state.asked_text(&[]).contains("leaked"));
        state.note_leak(0, 1, 2);
        assert!(state.text_once(&[]).is_some_and(|text| text.contains("1 leaked guard")));
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
        assert_eq!(visible("a\u{ad}\u{e0061}"), "a\\u{ad}\\u{e0061}");
    }
}
