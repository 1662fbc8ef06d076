//! Records of holds, and what the next one learns of them.

use super::*;
use crate::files::record::FileRecord;
use crate::files::testing::Scratch;

#[test]
fn an_end_is_reported_once_however_many_share_the_lock() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "reported"));
    for _ in 0..2 {
        drop(begin(&files, LockMode::Exclusive, false));
        assert!(matches!(begin(&files, LockMode::Shared, false).past(), Past::Ended(Some(_))));
        assert_eq!(begin(&files, LockMode::Shared, false).past(), Past::Abandoned);
        let mut hold = begin(&files, LockMode::Exclusive, false);
        assert_eq!(hold.past(), Past::Abandoned, "this process has learned of it");
        hold.mark_consistent();
        hold.release();
    }
    drop(begin(&files, LockMode::Exclusive, false));
    assert!(matches!(begin(&files, LockMode::Exclusive, false).past(), Past::Ended(Some(_))));
}

#[test]
fn an_end_that_looks_like_the_last_is_reported_to_the_next_who_holds_it_alone() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "alike"));
    for _ in 0..2 {
        std::fs::write(files.path(FileRole::Info), "foreign").unwrap();
        let hold = begin(&files, LockMode::Exclusive, false);
        assert_eq!(hold.past(), Past::Ended(None));
        hold.release();
    }
}

/// Windows removes no file that is open.
#[cfg(unix)]
#[test]
fn whatever_becomes_of_a_hold_whose_file_was_removed_the_record_is_left_to_the_next_holder() {
    type Act = fn(FileHold);
    let acts: [(&str, Act); 4] = [
        ("it ends", FileHold::end),
        ("it goes back", FileHold::give_back),
        ("it is released", |hold| assert!(matches!(hold.release(), Released::Removed))),
        ("others are waited for", |mut hold| hold.note_in(false).unwrap()),
    ];
    for (what, act) in acts {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "removed"));
        drop(begin(&files, LockMode::Exclusive, false));
        let lost = begin(&files, LockMode::Exclusive, false);
        std::fs::remove_file(files.path(FileRole::Lock)).unwrap();
        let next = begin(&files, LockMode::Exclusive, false);
        let says = std::fs::read(files.path(FileRole::Info)).unwrap();
        act(lost);
        assert_eq!(std::fs::read(files.path(FileRole::Info)).unwrap(), says, "{what}");
        next.release();
    }
}

#[test]
fn an_end_that_goes_back_with_a_shared_hold_is_reported_to_the_next_who_shares() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "unlearned"));
    let share = || begin(&files, LockMode::Shared, false);
    drop(begin(&files, LockMode::Exclusive, false));
    share().give_back();
    let first = share();
    assert!(matches!(first.past(), Past::Ended(Some(_))), "nobody has learned of it");
    let second = share();
    assert_eq!(second.past(), Past::Abandoned);
    second.give_back();
    assert_eq!(share().past(), Past::Abandoned, "the first one has learned of it");
    first.release();
    assert_eq!(share().past(), Past::Abandoned);
}

#[test]
fn an_end_that_looks_like_one_before_is_reported_to_those_who_share_once_it_was_well_between() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "between"));
    let status = Status { is_held: false, is_in: false, is_abandoned: false };
    let well = record::encode(files.name(), status, &RecordedHolder::now(0), 0);
    for _ in 0..2 {
        for (content, past) in [(&b"foreign"[..], Past::Ended(None)), (&well[..], Past::Clean)] {
            std::fs::write(files.path(FileRole::Info), content).unwrap();
            assert_eq!(begin(&files, LockMode::Shared, false).past(), past);
        }
    }
}

#[test]
fn a_mark_stays_through_holds_that_say_nothing_of_it_though_the_record_was_too_long() {
    for rest in [0, 1, 100] {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "marked"));
        std::fs::write(files.path(FileRole::Info), vec![1; record::length(files.name()) + rest]).unwrap();
        let first = begin(&files, LockMode::Exclusive, false);
        assert_eq!(first.past(), Past::Ended(None), "{rest} bytes too many");
        first.release();
        for _ in 0..2 {
            let hold = begin(&files, LockMode::Exclusive, false);
            assert_eq!(hold.past(), Past::Abandoned, "{rest} bytes too many");
            hold.release();
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_descriptors_of_a_hold_are_those_of_its_lock_and_of_its_directory() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "kept"));
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let hold = begin(&files, mode, false);
        let of = |path: &std::path::Path| path.metadata().map(|found| (found.dev(), found.ino())).unwrap();
        let kept: Vec<_> = hold.descriptors().map(|each| of(format!("/proc/self/fd/{each}").as_ref())).collect();
        assert_eq!(kept, [of(files.path(FileRole::Lock)), of(scratch.path())], "{mode:?}");
    }
}

#[test]
fn the_record_says_who_holds_and_whether_an_earlier_one_ended_inside() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "status"));
    let status = || {
        let bytes = files.record(record::length(files.name())).unwrap().unwrap();
        let FileRecord { status, holder, .. } = record::decode(&bytes).unwrap();
        assert_eq!(status.is_in, status.is_held);
        (status.is_held, status.is_abandoned, holder.may_live())
    };
    let hold = begin(&files, LockMode::Exclusive, false);
    assert_eq!(status(), (true, false, true));
    hold.end();
    assert_eq!(status(), (true, false, false));
    let hold = begin(&files, LockMode::Exclusive, false);
    assert_eq!(status(), (true, true, true));
    hold.end();
    assert_eq!(status(), (true, true, false));
    let mut hold = begin(&files, LockMode::Exclusive, false);
    hold.mark_consistent();
    hold.release();
    assert_eq!(status(), (false, false, true));
}

#[test]
fn an_end_while_others_are_waited_for_leaves_no_mark_and_keeps_one() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "outside"));
    let mut hold = begin(&files, LockMode::Exclusive, false);
    hold.note_in(false).unwrap();
    let bytes = files.record(record::length(files.name())).unwrap().unwrap();
    assert!(
        record::may_be_held(&bytes) && record::decode(&bytes).unwrap().holder.may_live(),
        "others see who holds it"
    );
    drop(hold);
    let mut hold = begin(&files, LockMode::Exclusive, false);
    assert_eq!(hold.past(), Past::Clean);
    hold.note_in(false).unwrap();
    hold.note_in(true).unwrap();
    drop(hold);
    let mut hold = begin(&files, LockMode::Exclusive, false);
    assert!(matches!(hold.past(), Past::Ended(Some(_))), "its code ran");
    hold.note_in(false).unwrap();
    drop(hold);
    assert_eq!(begin(&files, LockMode::Exclusive, false).past(), Past::Abandoned);
}

#[test]
fn a_thread_that_ends_while_others_are_waited_for_is_said_to_hold_it_no_more() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "thread"));
    let mut hold = begin(&files, LockMode::Exclusive, false);
    hold.note_in(false).unwrap();
    hold.end();
    assert!(!record::may_be_held(&std::fs::read(files.path(FileRole::Info)).unwrap()));
    assert_eq!(begin(&files, LockMode::Exclusive, false).past(), Past::Clean);
}

#[test]
fn a_part_of_several_that_ends_before_all_are_there_leaves_no_mark() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "part"));
    let part = || {
        let lock = Arc::new(files.try_lock(FileRole::Lock, LockMode::Exclusive).unwrap().unwrap());
        FileHold::begin(&files, LockMode::Exclusive, lock, Asker { thread: 0, wants_fence: false, is_part: true })
            .unwrap()
    };
    drop(part());
    let mut hold = part();
    assert_eq!(hold.past(), Past::Clean, "no code ran with it");
    hold.note_in(true).unwrap();
    drop(hold);
    assert!(matches!(part().past(), Past::Ended(Some(_))), "code ran");
    let hold = part();
    let bytes = std::fs::read(files.path(FileRole::Info)).unwrap();
    drop(hold);
    // As a process that is killed leaves it.
    std::fs::write(files.path(FileRole::Info), bytes).unwrap();
    assert_eq!(part().past(), Past::Abandoned, "the mark of an earlier one stays");
}

#[test]
fn an_end_that_a_thread_would_have_reported_had_all_of_several_been_there_is_reported_by_the_next() {
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let scratch = Scratch::new();
        let files = Arc::new(Files::of(&scratch, "unreported"));
        drop(begin(&files, LockMode::Exclusive, false));
        let mut part = begin(&files, mode, false);
        let Past::Ended(Some(ended)) = part.past() else { panic!("its holder ended inside") };
        part.note_in(false).unwrap();
        part.end();
        assert_eq!(begin(&files, LockMode::Exclusive, false).past(), Past::Ended(Some(ended)), "{mode:?}");
    }
}

/// As a clock that went back leaves it.
const AHEAD: u64 = u64::MAX / 2;

fn begin(files: &Arc<Files>, mode: LockMode, wants_fence: bool) -> FileHold {
    let lock = Arc::new(files.try_lock(FileRole::Lock, mode).unwrap().unwrap());
    FileHold::begin(files, mode, lock, Asker { thread: 0, wants_fence, is_part: false }).unwrap()
}

fn fence(files: &Arc<Files>, mode: LockMode) -> u64 {
    let hold = begin(files, mode, true);
    let fence = hold.fence().expect("it was asked for");
    hold.release();
    fence
}

#[test]
fn fences_go_on_from_the_record_however_the_holders_ended() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "fences"));
    let status = Status { is_held: false, is_in: false, is_abandoned: false };
    let bytes = record::encode(files.name(), status, &RecordedHolder::now(0), AHEAD);
    std::fs::write(files.path(FileRole::Info), bytes).unwrap();
    assert_eq!(fence(&files, LockMode::Shared), AHEAD);
    assert_eq!(fence(&files, LockMode::Exclusive), AHEAD + 1);
    assert_eq!(begin(&files, LockMode::Exclusive, false).fence(), None);
    // That one ended inside.
    assert_eq!(fence(&files, LockMode::Shared), AHEAD + 1);
    assert_eq!(begin(&files, LockMode::Exclusive, true).fence(), Some(AHEAD + 2));
    assert_eq!(fence(&files, LockMode::Exclusive), AHEAD + 3);
}

#[test]
fn fences_grow_though_the_record_is_lost() {
    let scratch = Scratch::new();
    let files = Arc::new(Files::of(&scratch, "lost"));
    let mut last = fence(&files, LockMode::Shared);
    for content in [None, Some(""), Some("foreign")] {
        let next = fence(&files, LockMode::Exclusive);
        assert!(next > last, "{next} after {last}");
        last = next;
        match content {
            None => std::fs::remove_file(files.path(FileRole::Info)).unwrap(),
            Some(content) => std::fs::write(files.path(FileRole::Info), content).unwrap(),
        }
        let shared = fence(&files, LockMode::Shared);
        assert!(shared > last, "{shared} after {last}");
        last = shared;
    }
}
