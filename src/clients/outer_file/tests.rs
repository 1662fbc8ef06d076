//! A request for a lock of a file that is kept elsewhere: against its time, its cancel, and the end of its thread.

use std::thread;
use std::time::Duration;

use super::*;
use crate::clients::outer::tests::{Back, event_loop};
use crate::clients::{ClientLoop, Whose};
use crate::engine::{Client, Expiry, Outcome, Reply, Settled};
use crate::files::FileHold;
use crate::files::testing::Scratch;

const LONG: Duration = Duration::from_secs(20);
const ASKER: Asker = Asker { thread: 0, wants_fence: false, is_part: false };

fn name(scratch: &Scratch, unit: u16) -> Arc<NamedFile> {
    NamedFile::get(&Arc::new(Directory::open(Some(scratch.path())).unwrap()), &[unit])
}

/// Locks it as another would.
fn lock(name: &Arc<NamedFile>) -> FileHold {
    let mut hold = None;
    until(|| {
        hold = name.try_lock(LockMode::Exclusive, ASKER).unwrap();
        hold.is_some()
    });
    hold.unwrap()
}

fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "it is not so in time");
        thread::yield_now();
    }
}

fn ask(here: &mut ClientLoop<'static>, name: &Arc<NamedFile>, limit: Limit, beside: Option<Arc<dyn Expiry>>) -> u32 {
    let asked = here.ask_outside(InFile::of(name, LockMode::Exclusive), ASKER, limit, beside);
    let Ok((Reply::Pending { token, .. }, _)) = asked else { panic!() };
    token
}

/// The one request that is not over, with its index.
fn pending(here: &ClientLoop<'static>) -> (u32, Arc<dyn OuterWait>) {
    here.clients.outer.waits.iter().next().map(|(index, request)| (index, Arc::clone(request))).unwrap()
}

fn next(here: &mut ClientLoop<'static>) -> Settled {
    let mut settled = None;
    until(|| {
        settled = here.next_settled();
        settled.is_some()
    });
    settled.unwrap()
}

fn is_left(here: &mut ClientLoop<'static>) -> bool {
    matches!(here.wait_left(), Ok(Reply::Now(Outcome::Refused { .. })))
}

/// Waits until nothing is left of what was given up last.
fn leave(here: &mut ClientLoop<'static>) {
    if let Ok(Reply::Pending { token, .. }) = here.wait_left() {
        assert_eq!(next(here).token, token);
    }
    assert!(is_left(here), "it was the last");
}

#[test]
fn the_clock_withdraws_a_wait_or_gives_back_its_grant_though_its_loop_does_not_turn() {
    let (scratch, mut here) = (Scratch::new(), event_loop());
    let name = name(&scratch, 97);
    for is_granted in [false, true] {
        let (mut held, back) = (Some(lock(&name)), Arc::<Back>::default());
        let limit = Limit::after(Duration::from_millis(if is_granted { 300 } else { 5 }));
        ask(&mut here, &name, limit, Some(Arc::clone(&back) as _));
        if is_granted {
            held.take().unwrap().release();
        }
        until(|| back.0.load(Ordering::SeqCst));
        if let Some(hold) = held {
            hold.release();
        }
        assert!(!lock(&name).is_abandoned(), "its loop has not turned yet");
        // Dropped, as if the process had been killed.
        assert!(lock(&name).is_abandoned());
        let mut hold = lock(&name);
        hold.mark_consistent();
        hold.release();
        assert_eq!(next(&mut here).outcome, Ok(Outcome::TimedOut));
        assert!(here.take_told().is_none());
        leave(&mut here);
    }
    here.end();
}

#[test]
fn a_wait_that_is_taken_back_before_and_after_its_grant_holds_nothing() {
    let (scratch, mut here) = (Scratch::new(), event_loop());
    let name = name(&scratch, 97);
    let held = lock(&name);
    let token = ask(&mut here, &name, Limit::Revocable, None);
    assert!(here.cancel(token).is_some() && here.cancel(token).is_none());
    leave(&mut here);
    held.release();
    let held = lock(&name);
    let token = ask(&mut here, &name, Limit::Revocable, None);
    let (_, request) = pending(&here);
    held.release();
    until(|| request.is_answered());
    assert!(here.cancel(token).is_some() && is_left(&mut here), "it was given back at once");
    assert!(here.next_settled().is_none() && !lock(&name).is_abandoned());
    here.end();
}

#[test]
fn a_grant_that_came_too_late_goes_back_unmarked_though_its_loop_comes_before_the_clock_has_done_that() {
    let (scratch, mut here) = (Scratch::new(), event_loop());
    let name = name(&scratch, 97);
    let held = lock(&name);
    let token = ask(&mut here, &name, Limit::Revocable, None);
    let (index, request) = pending(&here);
    held.release();
    until(|| request.is_answered());
    let (agent, place) = (Arc::clone(here.agent()), request.remains().unwrap());
    let settled = Settled { token, place, is_for_hold: false, outcome: Ok(Outcome::TimedOut) };
    assert!(here.clients.settled(&agent, Whose::Outer(index), &settled));
    assert!(here.take_told().is_none() && is_left(&mut here));
    assert!(!lock(&name).is_abandoned());
    here.end();
}

#[test]
fn the_end_of_a_thread_gives_back_unmarked_what_its_code_never_knew_and_marked_what_it_held() {
    let (scratch, mut here) = (Scratch::new(), event_loop());
    let [held, returned, granted, waits] = [97, 98, 99, 100].map(|unit| name(&scratch, unit));
    for name in [&held, &returned] {
        ask(&mut here, name, Limit::Endless, None);
        next(&mut here);
        assert!(matches!(here.take_told(), Some((_, Told::File(Ok(()))))));
    }
    let elsewhere = lock(&waits);
    ask(&mut here, &granted, Limit::Endless, None);
    let (_, request) = pending(&here);
    until(|| request.is_answered());
    ask(&mut here, &waits, Limit::Endless, None);
    here.end();
    elsewhere.release();
    let ended = [&held, &returned, &granted, &waits].map(|name| lock(name).is_abandoned());
    assert_eq!(ended, [true, false, false, false]);
}

#[test]
fn what_its_code_has_learned_of_is_marked_when_its_thread_ends_just_as_another_wait_was_returned() {
    let (scratch, mut here) = (Scratch::new(), event_loop());
    let [held, waits] = [97, 98].map(|unit| name(&scratch, unit));
    ask(&mut here, &held, Limit::Endless, None);
    next(&mut here);
    assert!(here.take_told().is_some() && here.next_settled().is_none());
    let elsewhere = lock(&waits);
    ask(&mut here, &waits, Limit::after(Duration::from_millis(5)), None);
    assert_eq!(next(&mut here).outcome, Ok(Outcome::TimedOut));
    here.end();
    elsewhere.release();
    assert!(lock(&held).is_abandoned());
}

#[test]
fn whoever_awaits_that_nothing_is_left_waits_until_it_is_so() {
    let (scratch, mut here) = (Scratch::new(), event_loop());
    let request = OuterRequest::new(here.engine(), here.agent(), InFile::of(&name(&scratch, 97), LockMode::Exclusive));
    // It was not asked for yet, and will be.
    let index = here.clients.outer.waits.insert(Arc::clone(&request) as _);
    here.clients.outer.give_up(index);
    let Ok(Reply::Pending { token, .. }) = here.wait_left() else { panic!("it is left") };
    assert_eq!(here.next_settled(), None);
    request.note_left();
    assert_eq!(here.next_settled().map(|settled| settled.token), Some(token));
    here.end();
}

#[test]
fn a_thread_that_gave_up_blocks_while_something_is_left_and_no_longer() {
    let (scratch, here) = (Scratch::new(), event_loop());
    let request = OuterRequest::new(here.engine(), here.agent(), InFile::of(&name(&scratch, 97), LockMode::Exclusive));
    if !cfg!(feature = "long-slices") {
        let left = InFile::leave_blocking(&request, &mut || false);
        assert!(matches!(left, Err(Failure::Interrupted)), "{left:?}");
    }
    request.note_left();
    assert!(InFile::leave_blocking(&request, &mut || panic!("it waits")).is_ok());
    here.end();
}

#[test]
fn the_end_inside_that_a_lock_of_a_file_was_to_report_is_reported_once_whether_or_not_its_code_knew() {
    for is_known in [false, true] {
        let (scratch, mut here) = (Scratch::new(), event_loop());
        let name = name(&scratch, 97);
        drop(lock(&name));
        if is_known {
            let number = here.hold_file(lock(&name));
            here.remove_held(number).unwrap().give_back(true);
        } else {
            // Granted to a loop whose code did not take it.
            ask(&mut here, &name, Limit::Endless, None);
            next(&mut here);
            here.refuse();
        }
        let number = here.hold_file(lock(&name));
        let Some(Held::File(held)) = here.remove_held(number) else { panic!("it holds nothing") };
        let mut hold = held.take().expect("it is held");
        assert!(hold.is_abandoned(), "until it is repaired");
        hold.mark_consistent();
        hold.release();
        assert!(!lock(&name).is_abandoned());
        here.end();
    }
}

#[test]
fn a_directory_that_cannot_be_read_is_told_with_its_path_and_its_error_and_one_that_is_not_there_is_empty() {
    let scratch = Scratch::new();
    let kind = FileHolders(Arc::new(Directory::open(Some(scratch.path())).unwrap()));
    let told = |error| match kind.take_in(0, Arc::new(Err(error))) {
        (None, Told::Holders(told)) => told,
        _ => panic!("of another kind"),
    };
    assert!(told(io::ErrorKind::NotFound.into()).is_ok());
    for raw in [None, Some(13)] {
        let error = raw.map_or(io::ErrorKind::PermissionDenied.into(), io::Error::from_raw_os_error);
        let Err(FileFailure::System { verb, path, error }) = told(error) else { panic!("no failure") };
        assert_eq!((verb, &*path, error.raw_os_error()), ("read", kind.0.path(), raw));
        assert!(raw.is_some() || error.kind() == io::ErrorKind::PermissionDenied);
    }
}
