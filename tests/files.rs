//! Locks among processes: real ones, which are killed and stopped. Each test's children are this program, told by its
//! environment to be one (see `child`).
#![cfg(all(target_os = "linux", not(loom)))]

#[path = "files/in_line.rs"]
mod in_line;
#[path = "files/others.rs"]
mod others;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{fs, thread};

use others::{ASKER, LONG, NOBODY, Other, Scratch, block, granted, lock, name, race, units, until, wait, withdraw};
use sablock::engine::{Failure, Limit};
use sablock::files::reader::list;
use sablock::files::{Directory, FileRole, LockMode, Released};

/// No test of its own: what the other processes run.
#[test]
fn child() {
    others::child();
}

#[test]
fn two_processes_exclude_each_other() {
    let scratch = Scratch::new("exclude");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("lock a"), "locked");
    assert!(mine.try_lock(LockMode::Exclusive, ASKER).unwrap().is_none());
    assert!(mine.try_lock(LockMode::Shared, ASKER).unwrap().is_none());
    assert!(name(&scratch.0, "A").try_lock(LockMode::Exclusive, ASKER).unwrap().is_some());
    let (_, outcome) = wait(&mine, LockMode::Exclusive);
    until("waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
    assert_eq!(other.run("release"), "released");
    let hold = granted(&outcome);
    assert!(!hold.is_abandoned());
    assert_eq!(other.run("try a"), "taken");
    let released = hold.release();
    assert!(matches!(released, Released::Whole), "{released:?}");
    assert_eq!(other.run("try a"), "locked");
}

#[test]
fn those_who_share_are_in_together_and_a_writer_waits_for_all() {
    let scratch = Scratch::new("share");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("share a"), "locked");
    let holds = [lock(&mine, LockMode::Shared), lock(&mine, LockMode::Shared)];
    let (_, outcome) = wait(&mine, LockMode::Exclusive);
    until("waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
    assert_eq!(other.run("release"), "released");
    for hold in holds {
        assert!(outcome.try_recv().is_err());
        hold.release();
    }
    granted(&outcome).release();
    assert!(!scratch.file("a", FileRole::Info).metadata().unwrap().permissions().readonly());
}

#[test]
fn a_killed_holder_is_reported_to_all_until_somebody_repairs() {
    let scratch = Scratch::new("kill");
    let (mut victim, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(victim.run("lock a"), "locked");
    let (_, outcome) = wait(&mine, LockMode::Exclusive);
    until("waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
    victim.signal(libc::SIGKILL);
    let hold = granted(&outcome);
    assert!(hold.is_abandoned());
    hold.release();
    let shared = lock(&mine, LockMode::Shared);
    assert!(shared.is_abandoned(), "those who share it learn of it");
    shared.release();
    let mut other = Other::start(&scratch.0);
    assert_eq!(other.run("lock a"), "abandoned", "and others still");
    assert_eq!(other.run("release"), "released");
    let mut hold = lock(&mine, LockMode::Exclusive);
    hold.mark_consistent();
    hold.release();
    assert_eq!(other.run("lock a"), "locked");
}

#[test]
fn a_holder_whose_thread_ends_is_reported_and_one_who_shares_is_not() {
    let scratch = Scratch::new("drop");
    let mine = name(&scratch.0, "a");
    drop(lock(&mine, LockMode::Shared));
    let hold = lock(&mine, LockMode::Exclusive);
    assert!(!hold.is_abandoned());
    drop(hold);
    assert!(lock(&mine, LockMode::Exclusive).is_abandoned());
}

#[test]
fn a_stopped_holder_keeps_it() {
    let scratch = Scratch::new("stop");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("lock a"), "locked");
    other.signal(libc::SIGSTOP);
    let limit = Limit::after(Duration::from_millis(400));
    assert!(matches!(block(&mine, LockMode::Exclusive, limit, &mut || true), Ok(None)));
    other.signal(libc::SIGCONT);
    assert_eq!(other.run("release"), "released");
    assert!(!lock(&mine, LockMode::Exclusive).is_abandoned());
}

/// Whether this process may change users; else the tests of rights say nothing.
fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("left out: needs root");
    }
    is_root
}

fn set_mode(directory: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn whoever_may_write_in_a_directory_is_never_refused_though_files_are_made_at_the_same_moment() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("rights");
    set_mode(&scratch.0, 0o1777);
    let mut nobody = Other::start_as_nobody(&scratch.0);
    nobody.begin("race");
    race(&scratch.0);
    assert_eq!(nobody.said(), "raced");
    // And what it has made is for this user.
    assert_eq!(nobody.run("lock theirs"), "locked");
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(scratch.file("theirs", FileRole::Lock)).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (NOBODY, 0o666), "whatever its umask");
}

#[test]
fn a_thread_does_not_wait_where_none_can_be_started_that_would_end_its_wait() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("no-threads");
    set_mode(&scratch.0, 0o1777);
    let hold = lock(&name(&scratch.0, "a"), LockMode::Exclusive);
    let mut nobody = Other::start_as_nobody(&scratch.0);
    assert_eq!(nobody.run("no-threads"), "no-threads");
    nobody.begin("cannot-wait a");
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        assert_eq!(scratch.waits_in_kernel("a"), 0, "who would end this wait?");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(nobody.said(), "cannot");
    hold.release();
    assert_eq!(nobody.run("try a"), "locked");
}

#[test]
fn a_group_that_may_write_in_a_directory_shares_its_locks() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("group");
    std::os::unix::fs::chown(&scratch.0, None, Some(NOBODY)).unwrap();
    set_mode(&scratch.0, 0o1770);
    lock(&name(&scratch.0, "mine"), LockMode::Exclusive).release();
    let mut nobody = Other::start_as_nobody(&scratch.0);
    assert_eq!(nobody.run("lock mine"), "locked");
    assert_eq!(nobody.run("lock theirs"), "locked");
    use std::os::unix::fs::MetadataExt;
    for name in ["mine", "theirs"] {
        let metadata = fs::metadata(scratch.file(name, FileRole::Info)).unwrap();
        assert_eq!((metadata.gid(), metadata.mode() & 0o777), (NOBODY, 0o660), "{name}");
    }
}

#[test]
fn who_may_only_read_a_directory_locks_nothing_there() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("reader");
    set_mode(&scratch.0, 0o755);
    lock(&name(&scratch.0, "mine"), LockMode::Exclusive).release();
    let mut nobody = Other::start_as_nobody(&scratch.0);
    assert_eq!(nobody.run("refused mine"), "refused");
    assert_eq!(nobody.run("refused theirs"), "refused");
    let directory = scratch.file("mine", FileRole::Lock);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o077, 0, "not even to lock it by hand");
}

#[test]
fn what_could_not_be_written_is_no_process_that_ended() {
    use sablock::files::Past;
    let scratch = Scratch::new("full");
    let mut other = Other::start(&scratch.0);
    lock(&name(&scratch.0, "old"), LockMode::Exclusive).release();
    assert_eq!(other.run("lock held"), "locked");
    assert_eq!(other.run("full 0"), "full");
    // No code has run with it.
    for refused in ["new", "old"] {
        assert_eq!(other.run(&format!("fails {refused}")), "failed");
        assert_eq!(lock(&name(&scratch.0, refused), LockMode::Exclusive).past(), Past::Clean, "{refused}");
    }
    // Its code has, and has ended well, which it cannot say: in doubt, the lock is marked.
    assert_eq!(other.run("release"), "released");
    assert_eq!(lock(&name(&scratch.0, "held"), LockMode::Exclusive).past(), Past::Abandoned);
}

#[test]
fn a_wait_that_is_withdrawn_is_nobody() {
    let scratch = Scratch::new("nobody");
    let (mut other, mut third) = (Other::start(&scratch.0), Other::start(&scratch.0));
    let mine = name(&scratch.0, "a");
    assert_eq!(other.run("share a"), "locked");
    let (waiting, _outcome) = wait(&mine, LockMode::Exclusive);
    until("waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
    assert_eq!(third.run("available-shared a"), "taken");
    assert!(withdraw(&waiting));
    assert_eq!(third.run("available-shared a"), "locked");
    until("waits no more in the kernel", || scratch.waits_in_kernel("a") == 0);
}

#[test]
fn withdrawn_waits_leave_their_threads_to_others() {
    const MANY: usize = 70;
    let scratch = Scratch::new("places");
    let mut other = Other::start(&scratch.0);
    for index in 0..=MANY {
        assert_eq!(other.run(&format!("lock {index}")), "locked");
    }
    let in_kernel = |index: usize| scratch.waits_in_kernel(&index.to_string());
    let mut waits: Vec<_> =
        (0..MANY).map(|index| wait(&name(&scratch.0, &index.to_string()), LockMode::Exclusive)).collect();
    until("as many as there may be", || (0..MANY).map(in_kernel).sum::<usize>() > 50);
    let (_waiting, outcome) = wait(&name(&scratch.0, &MANY.to_string()), LockMode::Exclusive);
    waits.drain(..).for_each(|(waiting, _outcome)| assert!(withdraw(&waiting)));
    until("it waits in the kernel, since there is a thread for it now", || in_kernel(MANY) == 1);
    until("nobody else does", || (0..MANY).map(in_kernel).sum::<usize>() == 0);
    assert_eq!(other.run("release"), "released");
    granted(&outcome).release();
}

#[test]
fn names_take_turns_with_the_threads_when_there_are_too_many() {
    const MANY: usize = 70;
    let scratch = Scratch::new("turns");
    let mut other = Other::start(&scratch.0);
    for index in 0..MANY {
        assert_eq!(other.run(&format!("lock {index}")), "locked");
    }
    let waits: Vec<_> =
        (0..MANY).map(|index| wait(&name(&scratch.0, &index.to_string()), LockMode::Exclusive)).collect();
    for index in (0..MANY).rev() {
        until("each waits in the kernel for a while", || scratch.waits_in_kernel(&index.to_string()) == 1);
    }
    assert_eq!(other.run("release"), "released");
    for (_waiting, outcome) in waits {
        granted(&outcome).release();
    }
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
        lock(&mine, LockMode::Exclusive).release();
    }
}

#[test]
fn a_wait_that_is_withdrawn_leaves_nothing() {
    let scratch = Scratch::new("withdraw");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("share a"), "locked");
    let (waiting, outcome) = wait(&mine, LockMode::Exclusive);
    until("waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
    assert!(withdraw(&waiting));
    assert!(!withdraw(&waiting));
    // A sharer is not kept out.
    let mut third = Other::start(&scratch.0);
    assert_eq!(third.run("share a"), "locked");
    let (_, second) = wait(&mine, LockMode::Exclusive);
    assert_eq!(third.run("release"), "released");
    assert_eq!(other.run("release"), "released");
    granted(&second).release();
    assert!(outcome.try_recv().is_err());
    drop((waiting, second, mine));
    until("no thread waits in the kernel", || scratch.waits_in_kernel("a") == 0);
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
    let waits: Vec<_> = names.iter().map(|name| wait(name, LockMode::Exclusive)).collect();
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
    let (mine, info) = (name(&scratch.0, "a"), scratch.file("a", FileRole::Info));
    lock(&mine, LockMode::Exclusive).release();
    let whole = fs::read(&info).unwrap();
    let long = vec![b'x'; 100_000];
    for content in [&b""[..], b"x", &whole[..whole.len() - 1], &long] {
        fs::write(&info, content).unwrap();
        let mut hold = lock(&mine, LockMode::Exclusive);
        assert!(hold.is_abandoned());
        hold.mark_consistent();
        hold.release();
        assert_eq!(fs::metadata(&info).unwrap().len(), whole.len() as u64);
        let hold = lock(&mine, LockMode::Exclusive);
        assert!(!hold.is_abandoned());
        hold.release();
    }
    // While it is held: the holder writes it again.
    let hold = lock(&mine, LockMode::Exclusive);
    fs::write(&info, "").unwrap();
    hold.release();
    assert!(!lock(&mine, LockMode::Exclusive).is_abandoned());
}

#[test]
fn a_holder_whose_file_was_removed_learns_of_it_and_leaves_the_record_alone() {
    let scratch = Scratch::new("removed");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    let hold = lock(&mine, LockMode::Exclusive);
    fs::remove_file(scratch.file("a", FileRole::Lock)).unwrap();
    assert_eq!(other.run("lock a"), "abandoned");
    assert!(matches!(hold.release(), Released::Removed));
    other.signal(libc::SIGKILL);
    assert!(lock(&mine, LockMode::Exclusive).is_abandoned());
}

#[test]
fn a_directory_that_was_removed_is_made_again() {
    let scratch = Scratch::new("gone");
    let directory = scratch.0.join("locks");
    let mine = name(&directory, "a");
    lock(&mine, LockMode::Exclusive).release();
    fs::remove_dir_all(&directory).unwrap();
    let released = lock(&mine, LockMode::Exclusive).release();
    assert!(matches!(released, Released::Whole) && directory.is_dir(), "{released:?}");
}

#[test]
fn records_say_who_holds_and_forget_who_was_killed() {
    let scratch = Scratch::new("holders");
    let directory = Directory::open(Some(&scratch.0)).unwrap();
    assert!(directory.holders().unwrap().is_empty());
    let mut other = Other::start(&scratch.0);
    assert_eq!(other.run("lock a"), "locked");
    assert_eq!(other.run("share b"), "locked");
    fs::write(scratch.file("c", FileRole::Info), "foreign").unwrap();
    fs::File::create(scratch.file("d", FileRole::Info)).unwrap().set_len(16 << 20).unwrap();
    let holders = directory.holders().unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!((holders[0].0.as_slice(), holders[0].1.process), (&*units("a"), other.child.id()));
    assert!(!holders[0].1.is_here());
    other.child.kill().unwrap();
    until("it has ended, though nobody has waited for it", || directory.holders().unwrap().is_empty());
}

#[test]
fn whoever_asks_for_holders_learns_of_all_who_had_locked_by_then_though_the_directory_is_being_read() {
    let scratch = Scratch::new("asked");
    let directory = Arc::new(Directory::open(Some(&scratch.0)).unwrap());
    let mut other = Other::start(&scratch.0);
    // Records of names that the other holds, each somewhere among many.
    let records = (0..20).map(|index| {
        let name = format!("a{index}");
        assert_eq!(other.run(&format!("lock {name}")), "locked");
        let file = scratch.file(&name, FileRole::Info);
        let held = fs::read(&file).unwrap();
        assert_eq!(other.run(&format!("unlock {name}")), "released");
        for index in 0..100 {
            fs::write(scratch.file(&format!("{name} {index}"), FileRole::Info), "foreign").unwrap();
        }
        (name, file, held)
    });
    for (index, (name, file, held)) in records.collect::<Vec<_>>().iter().enumerate() {
        list(&directory, |_| {});
        // Each at another moment of the reading.
        thread::sleep(Duration::from_micros(300) * index as u32);
        fs::write(file, held).unwrap();
        let (answer, answered) = channel();
        list(&directory, move |listed| answer.send(listed).unwrap());
        let listed = answered.recv_timeout(LONG).unwrap();
        let is_listed = listed.as_ref().as_ref().unwrap().iter().any(|(found, _)| *found == units(name));
        assert!(is_listed, "{name}");
    }
}

#[test]
fn nothing_is_left_in_the_kernel_of_a_blocked_wait_whose_time_was_over() {
    let scratch = Scratch::new("leave");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("lock a"), "locked");
    // In the kernel itself; and while another thread is there for it, once the first slice is over.
    for time in [2, 15].repeat(10).into_iter().map(Duration::from_millis) {
        assert!(matches!(block(&mine, LockMode::Exclusive, Limit::after(time), &mut || true), Ok(None)));
        assert_eq!(scratch.waits_in_kernel("a"), 0);
    }
}

#[test]
fn a_blocked_wait_ends_when_its_thread_is_to_end() {
    let scratch = Scratch::new("interrupt");
    let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
    assert_eq!(other.run("lock a"), "locked");
    let mut pauses = 0;
    let ended = block(&mine, LockMode::Exclusive, Limit::Endless, &mut || {
        pauses += 1;
        pauses < 3
    });
    assert!(matches!(ended, Err(Failure::Interrupted)));
    assert_eq!(other.run("release"), "released");
    assert_eq!(other.run("lock a"), "locked");
}

#[test]
fn what_a_thread_gets_when_it_is_to_end_goes_back_unmarked() {
    let scratch = Scratch::new("interrupt-granted");
    let directory = Directory::open(Some(&scratch.0)).unwrap();
    let mine = name(&scratch.0, "a");
    let mut hold = Some(lock(&mine, LockMode::Exclusive));
    let ended = block(&mine, LockMode::Exclusive, Limit::Endless, &mut || {
        hold.take().expect("it pauses once").release();
        until("it is granted", || !directory.holders().unwrap().is_empty());
        false
    });
    assert!(matches!(ended, Err(Failure::Interrupted)));
    assert!(!lock(&mine, LockMode::Exclusive).is_abandoned());
}

#[test]
fn a_name_whose_only_wait_has_failed_is_kept_from_nobody() {
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let scratch = Scratch::new(&format!("failed-{mode:?}"));
        let (mut other, mine) = (Other::start(&scratch.0), name(&scratch.0, "a"));
        assert_eq!(other.run("lock a"), "locked");
        let (_, outcome) = wait(&mine, mode);
        until("is next, and waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
        let lock = scratch.file("a", FileRole::Lock);
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        other.run("release");
        assert!(outcome.recv_timeout(LONG).unwrap().is_err(), "a directory cannot be locked");
        fs::remove_dir(&lock).unwrap();
        // The name is in use here still, and nobody waits for it. Whoever held it lost its file, and left its record dirty.
        assert_eq!(other.run("try a"), "abandoned", "nobody is next: {mode:?}");
        assert_eq!(other.run("release"), "released");
        assert_eq!(other.run("available-shared a"), "abandoned", "the gate is open: {mode:?}");
        assert_eq!(other.run("release"), "released");
        drop(mine);
    }
}
