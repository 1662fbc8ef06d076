//! Locks among processes: real ones, which are killed and stopped. Each test's children are this program, told by its
//! environment to be one (see `child`).
#![cfg(all(target_os = "linux", not(loom)))]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use sablock::files::{Blocked, Directory, Hold, LockName, Mode, Name, Outcome, Part};

const LONG: Duration = Duration::from_secs(20);

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("sablock-files-{test}-{}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, part: Part) -> PathBuf {
        self.0.join(LockName::new(&units(name)).file(part))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A thread whose wait was withdrawn may make its file again meanwhile.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn units(name: &str) -> Vec<u16> {
    name.encode_utf16().collect()
}

fn name(directory: &Path, name: &str) -> Arc<Name> {
    Name::get(&Arc::new(Directory::open(Some(directory)).unwrap()), &units(name))
}

fn lock(name: &Arc<Name>, mode: Mode) -> Hold {
    name.wait_blocking(mode, 0, Some(Instant::now() + LONG), &mut || true).expect("it is locked in time")
}

fn wait(name: &Arc<Name>, mode: Mode) -> (sablock::files::Wait, Receiver<Outcome>) {
    let (sender, outcome) = channel();
    (name.wait(mode, 0, move |outcome| drop(sender.send(outcome))), outcome)
}

fn granted(outcome: &Receiver<Outcome>) -> Hold {
    outcome.recv_timeout(LONG).expect("there is an outcome in time").expect("it is locked")
}

/// Waits until `is_so`.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// How many waits in the kernel there are for this file.
fn waits_in_kernel(file: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = fs::metadata(file) else { return 0 };
    let inode = format!(":{} ", metadata.ino());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    locks.lines().filter(|line| line.contains("->") && line.contains(&inode)).count()
}

/// Another process that does what it is told on its standard input, a line at a time; see `child`.
struct Other {
    child: Child,
    input: ChildStdin,
    output: BufReader<process::ChildStdout>,
}

impl Other {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env("SABLOCK_CHILD", directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Has it begin to do something.
    fn begin(&mut self, order: &str) {
        writeln!(self.input, "{order}").unwrap();
    }

    /// What it says next.
    fn said(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the child has ended");
            if let Some((_, said)) = line.trim().split_once("said ") {
                return said.to_owned();
            }
        }
    }

    fn run(&mut self, order: &str) -> String {
        self.begin(order);
        self.said()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: takes numbers; the child was not reaped, so its number is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// No test of its own: what the other processes do. `lock NAME`, `share NAME`, `try NAME`, `release`.
#[test]
fn child() {
    let Some(directory) = env::var_os("SABLOCK_CHILD").map(PathBuf::from) else { return };
    let mut holds = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (order, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let name = name(&directory, argument);
        let said = match order {
            "lock" | "share" | "try" => {
                let mode = if order == "share" { Mode::Shared } else { Mode::Exclusive };
                let hold = if order == "try" { name.try_lock(mode, 0).unwrap() } else { Some(lock(&name, mode)) };
                hold.map_or("taken", |hold| {
                    let said = if hold.is_abandoned() { "abandoned" } else { "locked" };
                    holds.push(hold);
                    said
                })
            }
            "loop-shared" => {
                // Overlaps with the other children that do the same, for ever.
                thread::spawn(move || {
                    loop {
                        let hold = lock(&name, Mode::Shared);
                        thread::sleep(Duration::from_millis(10));
                        hold.release();
                    }
                });
                "loops"
            }
            _ => {
                holds.drain(..).for_each(|hold| drop(hold.release()));
                "released"
            }
        };
        println!("said {said}");
    }
}

#[test]
fn two_processes_exclude_each_other() {
    let scratch = Scratch::new("exclude");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("lock a"), "locked");
    assert!(mine.try_lock(Mode::Exclusive, 0).unwrap().is_none());
    assert!(mine.try_lock(Mode::Shared, 0).unwrap().is_none());
    assert!(name(&scratch.0, "A").try_lock(Mode::Exclusive, 0).unwrap().is_some());
    let (_, outcome) = wait(&mine, Mode::Exclusive);
    until("waits in the kernel", || waits_in_kernel(&scratch.file("a", Part::Lock)) == 1);
    assert_eq!(other.run("release"), "released");
    let hold = granted(&outcome);
    assert!(!hold.is_abandoned());
    assert_eq!(other.run("try a"), "taken");
    let released = hold.release();
    assert!(!released.is_removed && released.unwritten.is_none());
    assert_eq!(other.run("try a"), "locked");
}

#[test]
fn those_who_share_are_in_together_and_a_writer_waits_for_all() {
    let scratch = Scratch::new("share");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("share a"), "locked");
    let holds = [lock(&mine, Mode::Shared), lock(&mine, Mode::Shared)];
    let (_, outcome) = wait(&mine, Mode::Exclusive);
    until("waits in the kernel", || waits_in_kernel(&scratch.file("a", Part::Lock)) == 1);
    assert_eq!(other.run("release"), "released");
    for hold in holds {
        assert!(outcome.try_recv().is_err());
        hold.release();
    }
    granted(&outcome).release();
    assert!(!scratch.file("a", Part::Info).metadata().unwrap().permissions().readonly());
}

#[test]
fn a_killed_holder_is_reported_to_all_until_somebody_repairs() {
    let scratch = Scratch::new("kill");
    let (mut victim, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(victim.run("lock a"), "locked");
    let (_, outcome) = wait(&mine, Mode::Exclusive);
    until("waits in the kernel", || waits_in_kernel(&scratch.file("a", Part::Lock)) == 1);
    victim.signal(libc::SIGKILL);
    let hold = granted(&outcome);
    assert!(hold.is_abandoned());
    hold.release();
    let shared = lock(&mine, Mode::Shared);
    assert!(shared.is_abandoned(), "those who share it are told");
    shared.release();
    let mut other = Other::start(&scratch.0);
    assert_eq!(other.run("lock a"), "abandoned", "and others still");
    assert_eq!(other.run("release"), "released");
    let mut hold = lock(&mine, Mode::Exclusive);
    hold.mark_consistent();
    hold.release();
    assert_eq!(other.run("lock a"), "locked");
}

#[test]
fn a_holder_whose_thread_ends_is_reported_and_one_who_shares_is_not() {
    let scratch = Scratch::new("drop");
    let mine = name(&scratch.0, "a");
    drop(lock(&mine, Mode::Shared));
    let hold = lock(&mine, Mode::Exclusive);
    assert!(!hold.is_abandoned());
    drop(hold);
    assert!(lock(&mine, Mode::Exclusive).is_abandoned());
}

#[test]
fn a_stopped_holder_keeps_it() {
    let scratch = Scratch::new("stop");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("lock a"), "locked");
    other.signal(libc::SIGSTOP);
    let end = Some(Instant::now() + Duration::from_millis(400));
    assert!(matches!(mine.wait_blocking(Mode::Exclusive, 0, end, &mut || true), Err(Blocked::TimedOut)));
    other.signal(libc::SIGCONT);
    assert_eq!(other.run("release"), "released");
    assert!(!lock(&mine, Mode::Exclusive).is_abandoned());
}

#[test]
fn a_process_that_is_stopped_while_it_is_next_holds_nobody_up_for_ever() {
    let scratch = Scratch::new("next");
    let (mut next, mut other, mine) = (Other::start(&scratch.0), Other::start(&scratch.0), name(&scratch.0, "a"));
    let hold = lock(&mine, Mode::Exclusive);
    next.begin("lock a");
    until("waits in the kernel", || waits_in_kernel(&scratch.file("a", Part::Lock)) == 1);
    next.signal(libc::SIGSTOP);
    until("waits no more", || waits_in_kernel(&scratch.file("a", Part::Lock)) == 0);
    hold.release();
    for order in ["lock a", "share a", "lock a"] {
        assert_eq!(other.run(order), "locked");
        assert_eq!(other.run("release"), "released");
    }
    next.signal(libc::SIGCONT);
    assert_eq!(next.said(), "locked");
}

#[test]
fn a_writer_is_not_overtaken_by_overlapping_readers_for_ever() {
    let scratch = Scratch::new("writer");
    let mut readers = [Other::start(&scratch.0), Other::start(&scratch.0), Other::start(&scratch.0)];
    for reader in &mut readers {
        assert_eq!(reader.run("loop-shared a"), "loops");
    }
    let mine = name(&scratch.0, "a");
    for _ in 0..10 {
        lock(&mine, Mode::Exclusive).release();
    }
}

#[test]
fn a_wait_that_is_withdrawn_leaves_nothing() {
    let scratch = Scratch::new("withdraw");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("share a"), "locked");
    let (waiting, outcome) = wait(&mine, Mode::Exclusive);
    until("waits in the kernel", || waits_in_kernel(&scratch.file("a", Part::Lock)) == 1);
    assert!(waiting.withdraw());
    assert!(!waiting.withdraw());
    // The thread that is still in the kernel keeps nobody who shares out.
    let mut third = Other::start(&scratch.0);
    assert_eq!(third.run("share a"), "locked");
    // And the next wait goes on with it.
    let (_, second) = wait(&mine, Mode::Exclusive);
    assert_eq!(third.run("release"), "released");
    assert_eq!(other.run("release"), "released");
    granted(&second).release();
    assert!(outcome.try_recv().is_err());
    drop((waiting, second, mine));
    until("no thread waits in the kernel", || waits_in_kernel(&scratch.file("a", Part::Lock)) == 0);
    assert_eq!(third.run("try a"), "locked");
}

#[test]
fn more_names_than_there_may_be_threads_are_all_served() {
    const MANY: usize = 80;
    let scratch = Scratch::new("many");
    let mut other = Other::start(&scratch.0);
    let names: Vec<_> = (0..MANY).map(|index| name(&scratch.0, &index.to_string())).collect();
    for index in 0..MANY {
        assert_eq!(other.run(&format!("lock {index}")), "locked");
    }
    let waits: Vec<_> = names.iter().map(|name| wait(name, Mode::Exclusive)).collect();
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads() < MANY + 8, "{} threads", threads());
    assert_eq!(other.run("release"), "released");
    for (_, outcome) in &waits {
        granted(outcome).release();
    }
}

#[test]
fn whatever_stands_in_the_record_is_no_crash_and_counts_as_abandoned() {
    let scratch = Scratch::new("foreign");
    let (mine, info) = (name(&scratch.0, "a"), scratch.file("a", Part::Info));
    lock(&mine, Mode::Exclusive).release();
    let whole = fs::read(&info).unwrap();
    let long = vec![b'x'; 100_000];
    for content in [&b""[..], b"x", &whole[..whole.len() - 1], &long] {
        fs::write(&info, content).unwrap();
        let mut hold = lock(&mine, Mode::Exclusive);
        assert!(hold.is_abandoned());
        hold.mark_consistent();
        hold.release();
        assert_eq!(fs::metadata(&info).unwrap().len(), whole.len() as u64);
        let hold = lock(&mine, Mode::Exclusive);
        assert!(!hold.is_abandoned());
        hold.release();
    }
    // While it is held: the holder writes it again.
    let hold = lock(&mine, Mode::Exclusive);
    fs::write(&info, "").unwrap();
    hold.release();
    assert!(!lock(&mine, Mode::Exclusive).is_abandoned());
}

#[test]
fn a_holder_whose_file_was_removed_learns_of_it_and_leaves_the_record_alone() {
    let scratch = Scratch::new("removed");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    let hold = lock(&mine, Mode::Exclusive);
    fs::remove_file(scratch.file("a", Part::Lock)).unwrap();
    assert_eq!(other.run("lock a"), "abandoned");
    assert!(hold.release().is_removed);
    other.signal(libc::SIGKILL);
    assert!(lock(&mine, Mode::Exclusive).is_abandoned());
}

#[test]
fn a_directory_that_was_removed_is_made_again() {
    let scratch = Scratch::new("gone");
    let directory = scratch.0.join("locks");
    let mine = name(&directory, "a");
    lock(&mine, Mode::Exclusive).release();
    fs::remove_dir_all(&directory).unwrap();
    let released = lock(&mine, Mode::Exclusive).release();
    assert!(!released.is_removed && directory.is_dir());
}

#[test]
fn records_tell_who_holds_and_forget_who_was_killed() {
    let scratch = Scratch::new("holders");
    let directory = Directory::open(Some(&scratch.0)).unwrap();
    assert!(directory.holders().unwrap().is_empty());
    let mut other = Other::start(&scratch.0);
    assert_eq!(other.run("lock a"), "locked");
    assert_eq!(other.run("share b"), "locked");
    fs::write(scratch.file("c", Part::Info), "foreign").unwrap();
    let holders = directory.holders().unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!((holders[0].0.as_slice(), holders[0].1.process), (&*units("a"), other.child.id()));
    assert!(!holders[0].1.is_here());
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    assert!(directory.holders().unwrap().is_empty());
}

#[test]
fn a_blocked_wait_ends_when_its_thread_is_to_end() {
    let scratch = Scratch::new("interrupt");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("lock a"), "locked");
    let mut pauses = 0;
    let ended = mine.wait_blocking(Mode::Exclusive, 0, None, &mut || {
        pauses += 1;
        pauses < 3
    });
    assert!(matches!(ended, Err(Blocked::Interrupted)));
    assert_eq!(other.run("release"), "released");
    assert_eq!(other.run("lock a"), "locked");
}
