//! Lines of names, step by step: nobody else waits for these names.

use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::files::hold::Released;
use crate::files::line::FileOutcome;
use crate::files::testing::Scratch;

const MODES: [LockMode; 2] = [LockMode::Exclusive, LockMode::Shared];

const ASKER: Asker = Asker { thread: 0, wants_fence: false, is_part: false };

/// A name of this process, and its files as another process has them.
fn name(scratch: &Scratch) -> (Arc<NamedFile>, Files) {
    let directory = Arc::new(Directory::open(Some(scratch.path())).unwrap());
    (NamedFile::get(&directory, &[97]), Files::of(scratch, "a"))
}

/// A wait whose patience has just ended, or does not for an hour, and its outcome. Nobody sees to it.
fn wait(name: &NamedFile, mode: LockMode, is_patient: bool) -> Receiver<FileOutcome> {
    let (says, said) = channel();
    let mut wanted = Wanted::new(0, ASKER, move |outcome| says.send(outcome).unwrap_or_default());
    wanted.since = if is_patient { wanted.since + Duration::from_secs(3600) } else { wanted.since - PATIENCE };
    name.state.lock().line(mode).wanted.push_back(wanted);
    said
}

fn is_free(files: &Files, role: FileRole) -> bool {
    files.try_lock(role, LockMode::Exclusive).unwrap().is_some()
}

#[test]
fn who_just_tries_does_not_pass_those_who_wait_here() {
    for waits in MODES {
        let scratch = Scratch::new();
        let (name, _) = name(&scratch);
        let _said = wait(&name, waits, true);
        for mode in MODES {
            assert!(name.try_lock(mode, ASKER).unwrap().is_none(), "{mode:?}, while {waits:?} is waited for");
            let is_kept_out = mode == LockMode::Shared && waits == LockMode::Exclusive;
            let got = name.lock_if_available(mode, ASKER).unwrap();
            assert_eq!(got.is_none(), is_kept_out, "{mode:?} if available, while {waits:?} is waited for");
        }
    }
}

#[test]
fn those_who_share_a_file_here_have_it_together_until_it_is_removed() {
    let scratch = Scratch::new();
    let (name, files) = name(&scratch);
    let share = || name.try_lock(LockMode::Shared, ASKER).unwrap().unwrap();
    let [first, second] = [share(), share()];
    first.release();
    assert!(!is_free(&files, FileRole::Lock), "the second one has it");
    std::fs::remove_file(files.path(FileRole::Lock)).unwrap();
    let third = share();
    assert!(!is_free(&files, FileRole::Lock), "it has the new file");
    assert!(matches!(second.release(), Released::Removed));
    assert!(matches!(third.release(), Released::Whole));
    assert!(is_free(&files, FileRole::Lock));
}

#[test]
fn a_grant_lets_in_the_first_or_all_who_share_once_others_may_be_next() {
    for (mode, expected) in [(LockMode::Exclusive, vec![1]), (LockMode::Shared, vec![1, 2, 3])] {
        let scratch = Scratch::new();
        let (name, _) = name(&scratch);
        let files = Arc::clone(&name.files);
        let (says, said) = channel();
        for number in 1..=3 {
            let (says, files) = (says.clone(), Arc::clone(&files));
            let reply = move |outcome: FileOutcome| {
                assert!(is_free(&files, FileRole::Turn), "whoever is let in finds no turn taken");
                says.send((number, outcome.unwrap())).unwrap();
            };
            name.state.lock().line(mode).wanted.push_back(Wanted::new(number, ASKER, reply));
        }
        let lock = |role, mode| files.try_lock(role, mode).unwrap().unwrap();
        assert!(name.take_turn(mode, lock(FileRole::Turn, LockMode::Exclusive)) && name.is_next(mode));
        name.grant(mode, lock(FileRole::Lock, mode));
        assert!(!name.is_next(mode));
        let granted: Vec<_> = said.try_iter().collect();
        assert_eq!(granted.iter().map(|(number, _)| *number).collect::<Vec<_>>(), expected, "{mode:?}");
        assert!(!is_free(&files, FileRole::Lock));
        drop(granted);
        assert!(is_free(&files, FileRole::Lock));
    }
}

#[test]
fn a_failure_is_that_of_the_first_who_waits_and_the_others_go_on() {
    for mode in MODES {
        let scratch = Scratch::new();
        let (name, files) = name(&scratch);
        let said = [(); 2].map(|()| wait(&name, mode, true));
        let turn = name.files.try_lock(FileRole::Turn, LockMode::Exclusive).unwrap().unwrap();
        assert!(name.take_turn(mode, turn));
        let failure = || FileFailure::NoThread(io::ErrorKind::Other.into());
        name.fail(mode, failure());
        assert!(said[0].try_recv().unwrap().is_err() && said[1].try_recv().is_err());
        assert!(name.is_next(mode) && !is_free(&files, FileRole::Turn), "the second is next");
        name.fail(mode, failure());
        assert!(said[1].try_recv().unwrap().is_err());
        assert!(is_free(&files, FileRole::Turn));
    }
}

#[test]
fn the_gate_is_closed_from_the_first_step_to_the_end_of_all_who_wait_to_hold_it_alone() {
    for by_keeper in [false, true] {
        for mode in MODES {
            let scratch = Scratch::new();
            let (name, files) = name(&scratch);
            let said = [(); 2].map(|()| wait(&name, mode, true));
            if by_keeper {
                name.state.lock().line(mode).driver = Driver::Keeper;
                assert!(!name.end_polling(mode));
            } else {
                let thread = name.state.lock().line(mode).leave_to_thread();
                assert!(matches!(name.next_step(mode, &thread), Step::Turn));
            }
            let is_alone = mode == LockMode::Exclusive;
            assert_eq!(files.is_gate_open().unwrap(), !is_alone, "{mode:?}, by the keeper: {by_keeper}");
            name.grant(mode, name.files.try_lock(FileRole::Lock, mode).unwrap().unwrap());
            drop(said[0].try_recv().unwrap());
            assert_eq!(files.is_gate_open().unwrap(), !is_alone, "the second waits still");
            if is_alone {
                name.grant(mode, name.files.try_lock(FileRole::Lock, mode).unwrap().unwrap());
                assert!(files.is_gate_open().unwrap());
            }
        }
    }
}

#[test]
fn a_thread_whose_call_was_ended_waits_again_for_those_who_came_since() {
    let scratch = Scratch::new();
    let (name, files) = name(&scratch);
    let thread = name.state.lock().line(LockMode::Exclusive).leave_to_thread();
    thread.interrupt();
    let _said = wait(&name, LockMode::Exclusive, true);
    let (file, _) = files.open(FileRole::Turn).unwrap();
    assert!(!thread.run(&file, || Ok(())).unwrap());
    assert!(matches!(name.next_step(LockMode::Exclusive, &thread), Step::Turn));
    assert!(thread.run(&file, || Ok(())).unwrap());
}

#[test]
fn a_driver_that_leaves_hands_over_to_another_while_somebody_waits() {
    for mode in MODES {
        let scratch = Scratch::new();
        let (name, _) = name(&scratch);
        let first = name.state.lock().line(mode).leave_to_thread();
        assert!(name.stop_driving(mode, &Arc::default()).is_none(), "another's");
        assert!(name.state.lock().line(mode).is_driven_by(&first));
        let said = wait(&name, mode, true);
        let second = name.stop_driving(mode, &first).expect("somebody waits");
        assert!(name.state.lock().line(mode).is_driven_by(&second));
        name.fail(mode, FileFailure::NoThread(io::ErrorKind::Other.into()));
        assert!(said.try_recv().unwrap().is_err());
        assert!(name.stop_driving(mode, &second).is_none(), "nobody waits");
        assert!(matches!(name.state.lock().line(mode).driver, Driver::None));
    }
}

#[test]
fn a_line_is_looked_at_when_its_patience_ends_or_the_time_of_a_thread_that_drives_it_itself() {
    for (time, is_first) in [(PATIENCE / 2, true), (2 * PATIENCE, false)] {
        let scratch = Scratch::new();
        let (name, files) = name(&scratch);
        let thread = Arc::<Interrupt>::default();
        let wanted = Wanted::new(0, ASKER, |_| {});
        let (patience_ends, until) = (wanted.since + PATIENCE, wanted.since + time);
        let driver = Driver::Thread { interrupt: Arc::clone(&thread), until: Some(until) };
        assert!(name.push(LockMode::Exclusive, wanted, driver) == Drive::Begins);
        let look_at = name.state.lock().line(LockMode::Exclusive).look_at;
        assert_eq!(look_at, Some(if is_first { until } else { patience_ends }));
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        let at = Instant::now();
        name.state.lock().line(LockMode::Exclusive).look_at = Some(at);
        name.look(LockMode::Exclusive, at);
        let (file, _) = files.open(FileRole::Turn).unwrap();
        assert!(!thread.run(&file, || Ok(())).unwrap(), "its call is ended");
    }
}

/// In its turn a line waits with its driver alone.
#[test]
fn who_has_waited_long_for_a_turn_waits_without_one_too_and_so_does_the_next() {
    for mode in MODES {
        let scratch = Scratch::new();
        let (name, files) = name(&scratch);
        let stopped = files.try_lock(FileRole::Turn, LockMode::Exclusive).unwrap().unwrap();
        for _ in 0..2 {
            let holder = files.try_lock(FileRole::Lock, LockMode::Exclusive).unwrap().unwrap();
            let said = wait(&name, mode, false);
            let at = Instant::now();
            name.state.lock().line(mode).look_at = Some(at);
            name.look(mode, at);
            assert!(matches!(name.state.lock().line(mode).direct, Direct::Thread(_)), "{mode:?}");
            let next = wait(&name, LockMode::Exclusive, true);
            drop(holder);
            drop(said.recv_timeout(Duration::from_secs(20)).unwrap().unwrap());
            let until = Instant::now() + Duration::from_secs(20);
            while !matches!(name.state.lock().line(mode).direct, Direct::None) {
                assert!(Instant::now() < until, "{mode:?}: the thread is done");
                std::thread::yield_now();
            }
            if mode == LockMode::Exclusive {
                assert!(name.state.lock().line(mode).look_at.is_some(), "the next one is looked at again");
            }
            drop((name.state.lock().line(LockMode::Exclusive).wanted.pop_front(), next));
        }
        drop(stopped);
        let _said = wait(&name, mode, false);
        assert!(name.take_turn(mode, files.try_lock(FileRole::Turn, LockMode::Exclusive).unwrap().unwrap()));
        let at = Instant::now();
        name.state.lock().line(mode).look_at = Some(at);
        name.look(mode, at);
        assert!(matches!(name.state.lock().line(mode).direct, Direct::None), "it is next");
    }
}
