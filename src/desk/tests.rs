//! The desk, an inbox and leases, step by step.

use std::time::{Duration, Instant};

use super::*;

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Granted { fence, lease, .. }, Self::Granted { fence: other, lease: theirs, .. }) => {
                fence == other && Arc::ptr_eq(lease, theirs)
            }
            (Self::Refused, Self::Refused) => true,
            (Self::Failed(reason), Self::Failed(other)) => reason == other,
            _ => false,
        }
    }
}

fn question(verb: u32) -> Question {
    Question { store: 1, verb, name: vec![97], is_shared: false, flags: 0, payload: String::new(), thread: 0 }
}

fn desk() -> (Arc<Desk>, Arc<Inbox>) {
    let desk = Arc::new(Desk::default());
    desk.serve(Box::new(|| {}));
    (desk, Arc::new(Inbox::new(Box::new(|| {}))))
}

fn granted(lease: &Arc<Lease>) -> Answer {
    Answer::Granted { fence: 7, lease: Arc::clone(lease), text: String::new() }
}

#[test]
fn a_lock_worker_is_woken_once_for_all_that_there_is_to_do() {
    let desk = Desk::default();
    let inbox = Arc::new(Inbox::new(Box::new(|| {})));
    let wakes = Arc::new(AtomicU32::new(0));
    let woken = || wakes.swap(0, Ordering::Relaxed);
    let here = Arc::clone(&wakes);
    desk.ask(question(0), &inbox);
    assert!(!desk.is_served() && !desk.is_ended());
    desk.serve(Box::new(move || {
        here.fetch_add(1, Ordering::Relaxed);
    }));
    assert!(desk.is_served() && !desk.is_ended());
    assert_eq!(woken(), 1, "of what was asked before it came");
    desk.ask(question(0), &inbox);
    assert_eq!(woken(), 0, "it has not looked since");
    assert!(desk.next().is_some() && desk.next().is_some() && desk.next().is_none());
    desk.ask(question(0), &inbox);
    assert_eq!(woken(), 1);
    desk.end("it has ended");
    assert!(!desk.is_served() && desk.is_ended());
    desk.ask(question(0), &inbox);
    assert!(desk.next().is_none());
    assert_eq!(woken(), 0);
}

#[test]
fn a_thread_is_woken_once_for_all_news_that_it_has_not_looked_at() {
    let desk = Desk::default();
    let wakes = Arc::new(AtomicU32::new(0));
    let here = Arc::clone(&wakes);
    let inbox = Arc::new(Inbox::new(Box::new(move || {
        here.fetch_add(1, Ordering::Relaxed);
    })));
    let refused = || {
        let inquiry = desk.ask(question(0), &inbox);
        assert!(desk.answer(inquiry.number, Answer::Refused));
        (inquiry.number, wakes.load(Ordering::Relaxed))
    };
    let ((first, woken), (second, still)) = (refused(), refused());
    assert_eq!((woken, still), (1, 1));
    assert_eq!([inbox.next(), inbox.next(), inbox.next()], [Some(first), Some(second), None]);
    assert_eq!(refused().1, 2);
}

#[test]
fn who_holds_alone_and_is_in_leaves_a_mark() {
    let (desk, inbox) = desk();
    for is_shared in [false, true] {
        let inquiry = desk.ask(Question { is_shared, ..question(0) }, &inbox);
        let marks = [true, false, true].map(|is_in| {
            inquiry.note_in(is_in);
            inquiry.leaves_mark()
        });
        assert_eq!(marks, if is_shared { [false; 3] } else { [true, false, true] });
    }
}

#[test]
fn a_loss_is_known_by_its_number() {
    for loss in [Loss::Unreachable, Loss::Taken, Loss::Closed, Loss::Worker] {
        assert_eq!(Loss::from_number(loss as u32), loss);
    }
}

#[test]
fn what_was_granted_to_nobody_has_to_be_released() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    assert!(matches!(desk.next(), Some(Task::Ask(_))));
    assert!(desk.cancel(&inquiry));
    assert!(matches!(desk.next(), Some(Task::Cancel(number)) if number == inquiry.number));
    assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
    assert!(inbox.next().is_none());
}

#[test]
fn a_grant_that_nobody_has_looked_at_can_be_cancelled_and_is_released() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    desk.next();
    assert!(desk.answer(inquiry.number, granted(&Lease::endless())));
    assert!(!inquiry.is_held());
    assert!(desk.cancel(&inquiry));
    assert!(matches!(desk.next(), Some(Task::Release(number, false)) if number == inquiry.number));
    assert!(inbox.next().is_none_or(|number| number == inquiry.number));
    assert!(inquiry.take().is_none());
}

#[test]
fn a_request_whose_time_is_over_finds_that_it_was_refused_and_what_it_got_is_released() {
    let (desk, inbox) = desk();
    let ask = || {
        let inquiry = desk.ask(question(0), &inbox);
        assert!(matches!(desk.next(), Some(Task::Ask(_))));
        inquiry
    };
    let waits = ask();
    assert!(desk.expire(&waits));
    assert!(matches!(desk.next(), Some(Task::Cancel(number)) if number == waits.number));
    assert_eq!((inbox.next(), waits.take()), (Some(waits.number), Some(Answer::Refused)));
    assert!(!desk.answer(waits.number, granted(&Lease::endless())), "nobody wants it");
    let late = ask();
    assert!(desk.answer(late.number, granted(&Lease::endless())) && desk.expire(&late));
    assert!(matches!(desk.next(), Some(Task::Release(number, false)) if number == late.number));
    assert_eq!((inbox.next(), late.take()), (Some(late.number), Some(Answer::Refused)));
    let held = ask();
    assert!(desk.answer(held.number, granted(&Lease::endless())) && held.take().is_some());
    assert!(!desk.expire(&held) && held.is_held(), "its thread came for it in time");
    desk.release(&held, false);
    desk.release(&held, false);
    assert!(matches!(desk.next(), Some(Task::Release(number, false)) if number == held.number));
    assert!(desk.next().is_none(), "it is released once");
}

#[test]
fn a_lease_that_is_over_is_seen_by_whoever_looks_though_nobody_tells() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    let lease = Lease::endless();
    desk.answer(inquiry.number, granted(&lease));
    assert_eq!(inquiry.take(), Some(Answer::Granted { fence: 7, lease: Arc::clone(&lease), text: String::new() }));
    assert_eq!(inquiry.lost(), None);
    lease.set_end(now() + 3_600_000.0);
    assert_eq!(inquiry.lost(), None);
    lease.set_end(now() - 1.0);
    assert_eq!(inquiry.lost(), Some(Loss::Unreachable));
    lease.set_end(now() + 3_600_000.0);
    assert_eq!(inquiry.lost(), Some(Loss::Unreachable), "what was lost stays lost");
    assert!(inquiry.is_held());
    assert_eq!(desk.release(&inquiry, false), Some(Loss::Unreachable));
    assert!(!inquiry.is_held());
}

#[test]
fn the_end_of_a_lease_is_news_for_all_who_hold_by_it_and_for_nobody_else() {
    let (desk, inbox) = desk();
    let leases = [Lease::endless(), Lease::endless()];
    let [held, elsewhere, granted] = [&leases[0], &leases[1], &leases[0]].map(|lease| {
        let inquiry = desk.ask(question(0), &inbox);
        desk.answer(inquiry.number, granted(lease));
        assert_eq!(inbox.next(), Some(inquiry.number));
        inquiry
    });
    assert!(held.take().is_some() && elsewhere.take().is_some());
    desk.end_lease(&leases[0], Loss::Taken);
    let mut news = [inbox.next(), inbox.next()];
    news.sort_unstable();
    assert_eq!((news, inbox.next()), ([Some(held.number), Some(granted.number)], None));
    assert_eq!((held.lost(), elsewhere.lost()), (Some(Loss::Taken), None));
}

#[test]
fn of_several_reasons_of_a_loss_the_first_is_kept() {
    let lease = Lease::endless();
    lease.end(Loss::Closed);
    lease.end(Loss::Worker);
    assert_eq!(lease.lost(), Some(Loss::Closed));
}

#[test]
fn what_is_over_is_known_no_more() {
    let (desk, inbox) = desk();
    let [refused, held, cancelled] = [0; 3].map(|verb| desk.ask(question(verb), &inbox));
    let known = || desk.lock().inquiries.len();
    desk.answer(refused.number, Answer::Refused);
    desk.answer(held.number, granted(&Lease::endless()));
    held.take();
    assert_eq!(known(), 2);
    desk.release(&held, false);
    assert_eq!(known(), 1);
    desk.cancel(&cancelled);
    assert_eq!(known(), 0);
}

#[test]
fn who_has_not_looked_at_a_grant_yet_is_told_of_its_loss() {
    let (desk, inbox) = desk();
    let (inquiry, lease) = (desk.ask(question(0), &inbox), Lease::endless());
    desk.answer(inquiry.number, granted(&lease));
    assert_eq!((inbox.next(), inbox.next()), (Some(inquiry.number), None));
    desk.end_lease(&lease, Loss::Taken);
    assert_eq!((inbox.next(), inbox.next()), (Some(inquiry.number), None));
    inquiry.take();
    assert_eq!(inquiry.lost(), Some(Loss::Taken));
}

#[test]
fn a_blocked_wait_does_not_outlast_its_time_by_a_slice() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    let lateness = (0..10).map(|_| {
        let deadline = Instant::now();
        assert!(matches!(inquiry.wait(Some(deadline), &mut || true), Err(Unanswered::TimedOut)));
        deadline.elapsed()
    });
    assert!(lateness.min() < Some(inquiry::SLICE));
}

#[test]
fn a_second_answer_changes_nothing_and_says_so() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    assert!(desk.answer(inquiry.number, Answer::Refused));
    assert!(!desk.answer(inquiry.number, granted(&Lease::endless())), "the lock is to be released");
    assert_eq!(inquiry.take(), Some(Answer::Refused));
    assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
    assert_eq!(inquiry.take(), None);
}

#[test]
fn a_second_grant_does_not_replace_the_first() {
    let (desk, inbox) = desk();
    let (inquiry, lease) = (desk.ask(question(0), &inbox), Lease::endless());
    assert!(desk.answer(inquiry.number, granted(&lease)));
    assert!(!desk.answer(inquiry.number, granted(&Lease::endless())), "the lock is to be released");
    assert_eq!(inquiry.take(), Some(granted(&lease)));
    assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
    assert!(inquiry.take().is_none() && inquiry.is_held_by(&lease));
}

#[test]
fn a_grant_that_meets_a_cancel_halfway_has_to_be_released() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    // As `Desk::cancel`, before the desk knows.
    assert_eq!(inquiry.cancel(), Some(false));
    assert!(!desk.answer(inquiry.number, granted(&Lease::endless())));
    assert!(inquiry.take().is_none());
}

#[test]
fn an_answer_for_a_thread_that_blocks_is_nothing_for_its_loop() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    let mut is_answered = false;
    let answer = inquiry.wait(None, &mut || {
        is_answered = is_answered || desk.answer(inquiry.number, Answer::Refused);
        true
    });
    assert_eq!((answer.ok(), is_answered), (Some(Answer::Refused), true));
    assert_eq!(inbox.next(), None);
}

#[test]
fn the_end_of_the_lock_worker_fails_what_waits_and_ends_what_is_held() {
    let (desk, inbox) = desk();
    let (held, waits) = (desk.ask(question(0), &inbox), desk.ask(question(0), &inbox));
    desk.answer(held.number, granted(&Lease::endless()));
    held.take();
    let blocked = {
        let waits = Arc::clone(&waits);
        std::thread::spawn(move || waits.wait(None, &mut || true))
    };
    desk.end("gone");
    assert_eq!(blocked.join().unwrap().ok(), Some(Answer::Failed("gone".into())));
    assert_eq!(held.lost(), Some(Loss::Worker));
    assert!(desk.next().is_none());
    let late = desk.ask(question(0), &inbox);
    assert_eq!(late.take(), Some(Answer::Failed("gone".into())));
}

#[test]
fn a_blocked_wait_ends_with_its_time_or_its_thread() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    let deadline = Instant::now() + Duration::from_millis(30);
    assert!(matches!(inquiry.wait(Some(deadline), &mut || true), Err(Unanswered::TimedOut)));
    assert!(Instant::now() >= deadline);
    let (began, mut pauses) = (Instant::now(), 0);
    let waited = inquiry.wait(None, &mut || {
        pauses += 1;
        assert!(began.elapsed() >= pauses * inquiry::SLICE, "a pause comes after each slice");
        pauses < 3
    });
    assert!(matches!(waited, Err(Unanswered::Interrupted)));
}

#[cfg(feature = "audit")]
#[test]
fn the_audit_says_which_requests_are_left() {
    let (desk, inbox) = desk();
    let asked = desk.ask(question(0), &inbox);
    assert_eq!(desk.left(|_| false), Vec::<String>::new());
    assert_eq!(desk.left(|thread| thread == 0).len(), 1, "its thread has ended");
    asked.cancel();
    assert_eq!(desk.left(|_| false).len(), 1, "it is over");
    desk.release(&asked, false);
    assert_eq!(desk.left(|_| true), Vec::<String>::new());
}

#[test]
fn of_a_loss_the_first_reason_stays() {
    let (desk, inbox) = desk();
    let inquiry = desk.ask(question(0), &inbox);
    let lease = Lease::endless();
    assert!(desk.answer(inquiry.number, granted(&lease)) && inquiry.take().is_some());
    inquiry.lose(Loss::Taken);
    lease.end(Loss::Unreachable);
    lease.end(Loss::Closed);
    desk.end("it has ended");
    assert_eq!((inquiry.lost(), lease.lost()), (Some(Loss::Taken), Some(Loss::Unreachable)));
}
