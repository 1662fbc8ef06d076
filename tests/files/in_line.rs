//! One who waits in line and was stopped there: others pass by.

use sablock::files::FileHold;

use super::*;

#[test]
fn a_process_that_is_stopped_while_it_is_next_holds_nobody_up_for_ever() {
    let scratch = Scratch::new("next");
    let (mut next, mut other, mine) = (Other::start(&scratch.0), Other::start(&scratch.0), name(&scratch.0, "a"));
    let hold = lock(&mine, LockMode::Exclusive);
    next.begin("lock a");
    until("waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
    next.signal(libc::SIGSTOP);
    until("waits no more", || scratch.waits_in_kernel("a") == 0);
    hold.release();
    for order in ["lock a", "share a", "lock a"] {
        assert_eq!(other.run(order), "locked");
        assert_eq!(other.run("release"), "released");
    }
    next.signal(libc::SIGCONT);
    assert_eq!(next.said(), "locked");
}

#[test]
fn one_who_was_stopped_in_line_is_passed_by_again_after_a_rest() {
    let scratch = Scratch::new("again");
    let (_next, hold) = stopped_in_line(&scratch, "lock a");
    let mut other = Other::start(&scratch.0);
    assert_eq!(other.run("keep a"), "kept");
    hold.release();
    for _ in 0..2 {
        assert_eq!(other.run("queue a"), "locked");
        assert_eq!(other.run("release"), "released");
        until("its keeper has ended", || !other.threads().contains(&"sablock-keeper".to_owned()));
    }
}

/// A process that waits in line for the name `a`, and was stopped there; and whoever holds it.
fn stopped_in_line(scratch: &Scratch, order: &str) -> (Other, FileHold) {
    let mut next = Other::start(&scratch.0);
    let hold = lock(&name(&scratch.0, "a"), LockMode::Exclusive);
    next.begin(order);
    until("waits in the kernel", || scratch.waits_in_kernel("a") >= 1);
    next.signal(libc::SIGSTOP);
    until("waits no more", || scratch.waits_in_kernel("a") == 0);
    (next, hold)
}

#[test]
fn those_who_share_are_in_together_beside_one_who_was_stopped_in_line() {
    for order in ["lock a", "share a"] {
        let scratch = Scratch::new(&format!("together-{}", &order[..4]));
        let (next, hold) = stopped_in_line(&scratch, order);
        hold.release();
        let mut readers: Vec<Other> = (0..4).map(|_| Other::start(&scratch.0)).collect();
        let start = Instant::now();
        readers.iter_mut().for_each(|reader| reader.begin("share a"));
        readers.iter_mut().for_each(|reader| assert_eq!(reader.said(), "locked", "all of them at once"));
        // Patience, and a second at the gate.
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        drop(next);
    }
}

#[test]
fn one_who_shares_waits_shared_and_lets_others_in_while_it_waits() {
    let scratch = Scratch::new("waits-shared");
    let (_next, hold) = stopped_in_line(&scratch, "lock a");
    let mut reader = Other::start(&scratch.0);
    reader.begin("share a");
    until("waits for the lock, too", || scratch.waits_in_kernel("a") >= 1);
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let waits: Vec<&str> = locks.lines().filter(|line| line.contains("->") && line.contains("FLOCK")).collect();
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{} ", fs::metadata(scratch.file("a", FileRole::Lock)).unwrap().ino());
    let wait = waits.iter().find(|line| line.contains(&inode)).expect("it waits");
    assert!(wait.contains("READ"), "{wait}");
    hold.release();
    assert_eq!(reader.said(), "locked");
}

#[test]
fn a_writer_gets_in_beside_long_overlapping_readers_and_one_who_was_stopped_in_line() {
    let scratch = Scratch::new("long");
    let (_next, hold) = stopped_in_line(&scratch, "lock a");
    let mut readers = [Other::start(&scratch.0), Other::start(&scratch.0), Other::start(&scratch.0)];
    for reader in &mut readers {
        assert_eq!(reader.run("loop-long a"), "loops");
    }
    hold.release();
    let mine = name(&scratch.0, "a");
    let mut longest = Duration::ZERO;
    for _ in 0..4 {
        // The readers are in.
        until("readers", || mine.lock_if_available(LockMode::Exclusive, ASKER).unwrap().is_none());
        let start = Instant::now();
        lock(&mine, LockMode::Exclusive).release();
        longest = longest.max(start.elapsed());
    }
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

#[test]
fn what_is_available_is_got_though_somebody_was_stopped_in_line() {
    let scratch = Scratch::new("available");
    let (next, hold) = stopped_in_line(&scratch, "lock a");
    let mut other = Other::start(&scratch.0);
    assert_eq!(other.run("available a"), "taken");
    hold.release();
    assert_eq!(other.run("try a"), "taken", "it does not pass who is next");
    assert_eq!(other.run("available a"), "locked", "nobody holds it");
    assert_eq!(other.run("release"), "released");
    assert_eq!(other.run("available-shared a"), "taken", "somebody waits to hold it alone");
    drop(next);
    until("nobody waits", || other.run("available-shared a") == "locked");
    assert_eq!(other.run("release"), "released");
    let (_next, hold) = stopped_in_line(&scratch, "share a");
    hold.release();
    assert_eq!(other.run("available-shared a"), "locked", "who waits there would share");
}

#[test]
fn all_who_wait_in_one_process_get_in_beside_one_who_was_stopped_in_line() {
    for order in ["lock a", "share a"] {
        let scratch = Scratch::new(&format!("all-{}", &order[..4]));
        let (_next, hold) = stopped_in_line(&scratch, order);
        let mine = name(&scratch.0, "a");
        // All of them come before the first has lost its patience, which none of them begins anew.
        let waits = [0; 3].map(|_| wait(&mine, LockMode::Exclusive));
        hold.release();
        for (_, outcome) in &waits {
            granted(outcome).release();
        }
    }
}
