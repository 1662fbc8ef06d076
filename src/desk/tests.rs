//! The desk and leases, step by step.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::testing::{granted, question, served, tasks};
use super::*;

/// An asker that notes what it is told.
#[derive(Default)]
struct Someone {
    has_left: AtomicBool,
    told: Mutex<Vec<&'static str>>,
}

impl Someone {
    fn told(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.told.lock())
    }

    fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }
}

impl Asker for Someone {
    fn answer(&self, answer: Answer) -> bool {
        if self.has_left.load(Ordering::Relaxed) {
            return false;
        }
        self.told.lock().push(match answer {
            Answer::Granted { fence: 7, .. } => "granted",
            Answer::Granted { .. } => "granted with another fence",
            Answer::Refused => "refused",
            Answer::Failed(_) => "failed",
        });
        true
    }

    fn lost(&self) {
        self.told.lock().push("lost");
    }

    #[cfg(feature = "audit")]
    fn left(&self, is_answered: bool) -> Option<String> {
        (!is_answered && self.has_left.load(Ordering::Relaxed)).then(|| "which is over".into())
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Asks; the lock worker takes the task.
fn ask(desk: &Desk) -> (u64, Arc<Someone>) {
    let (number, asker) = (next_number(), Arc::<Someone>::default());
    desk.ask(number, question(), Arc::clone(&asker) as Arc<dyn Asker>);
    assert!(desk.is_ended() || matches!(desk.next(), Some(Task::Ask(asked, _)) if asked == number));
    (number, asker)
}

fn known(desk: &Desk) -> usize {
    desk.0.lock().requests.len()
}

#[test]
fn a_lock_worker_is_woken_once_for_all_that_there_is_to_do() {
    let desk = Desk::default();
    let wakes = Arc::new(AtomicU32::new(0));
    let woken = || wakes.swap(0, Ordering::Relaxed);
    let here = Arc::clone(&wakes);
    let ask = || desk.ask(next_number(), question(), Arc::<Someone>::default());
    ask();
    assert!(!desk.is_served() && !desk.is_ended());
    desk.serve(Box::new(move || {
        here.fetch_add(1, Ordering::Relaxed);
    }));
    assert!(desk.is_served() && !desk.is_ended());
    assert_eq!(woken(), 1, "of what was asked before it came");
    ask();
    assert_eq!(woken(), 0, "it has not looked since");
    assert_eq!(tasks(&desk).len(), 2);
    ask();
    assert_eq!(woken(), 1);
    desk.end("it has ended");
    assert!(!desk.is_served() && desk.is_ended());
    ask();
    assert!(desk.next().is_none());
    assert_eq!(woken(), 0);
}

#[test]
fn a_loss_is_known_by_its_number() {
    for loss in [Loss::Unreachable, Loss::Taken, Loss::Closed, Loss::Worker] {
        assert_eq!(Loss::from_number(loss as u32), loss);
    }
}

#[test]
fn what_is_granted_to_nobody_has_to_be_released_by_the_lock_worker() {
    let desk = served();
    let (number, asker) = ask(&desk);
    asker.leave();
    // Before its desk knows.
    assert!(!desk.answer(number, granted(&Lease::endless())));
    desk.withdraw(number);
    assert_eq!(tasks(&desk), [('c', number)], "it holds nothing");
    assert!(!desk.answer(number, granted(&Lease::endless())), "its desk knows");
    desk.withdraw(number);
    assert_eq!((tasks(&desk), asker.told()), (vec![], vec![]));
}

#[test]
fn a_grant_that_is_withdrawn_or_released_is_released_once() {
    let desk = served();
    for is_withdrawn in [true, false] {
        let (number, asker) = ask(&desk);
        assert!(desk.answer(number, granted(&Lease::endless())));
        if is_withdrawn {
            desk.withdraw(number);
        }
        desk.release(number, !is_withdrawn);
        desk.release(number, true);
        desk.withdraw(number);
        assert_eq!(tasks(&desk), [(if is_withdrawn { 'r' } else { 'R' }, number)]);
        assert_eq!(asker.told(), ["granted"]);
    }
}

#[test]
fn a_second_answer_changes_nothing_and_says_so() {
    let desk = served();
    let (first, lease) = (granted(&Lease::endless()), Lease::endless());
    for answer in [first, Answer::Refused, Answer::Failed("why".into())] {
        let (number, asker) = ask(&desk);
        assert!(desk.answer(number, answer));
        for again in [granted(&lease), Answer::Refused, Answer::Failed("why".into())] {
            assert!(!desk.answer(number, again), "what was granted is to be released");
        }
        desk.end_lease(&lease, Loss::Taken);
        assert_eq!(asker.told().len(), 1);
    }
}

#[test]
fn what_is_over_is_known_no_more() {
    let desk = served();
    let [refused, held, withdrawn, failed] = [0; 4].map(|_| ask(&desk).0);
    desk.answer(refused, Answer::Refused);
    assert_eq!(known(&desk), 3);
    desk.answer(failed, Answer::Failed("why".into()));
    desk.answer(held, granted(&Lease::endless()));
    assert_eq!(known(&desk), 2);
    desk.release(held, false);
    assert_eq!(known(&desk), 1);
    desk.withdraw(withdrawn);
    assert_eq!(known(&desk), 0);
}

#[test]
fn what_is_told_is_there_until_it_is_released() {
    let desk = served();
    let number = next_number();
    desk.tell(number, question());
    assert!(!desk.answer(number, granted(&Lease::endless())), "nobody waits for an answer");
    desk.release(number, false);
    desk.release(number, false);
    assert_eq!(tasks(&desk), [('a', number), ('r', number)]);
    desk.tell(next_number(), question());
    desk.end("it has ended");
    desk.tell(next_number(), question());
    assert_eq!((tasks(&desk), known(&desk)), (vec![], 0));
}

#[test]
fn a_lease_that_is_over_is_seen_by_whoever_looks_though_nobody_tells() {
    let lease = Lease::endless();
    assert_eq!(lease.lost(), None);
    lease.set_end(now() + 3_600_000.0);
    assert_eq!(lease.lost(), None);
    lease.set_end(now() - 1.0);
    assert_eq!(lease.lost(), Some(Loss::Unreachable));
    lease.set_end(now() + 3_600_000.0);
    assert_eq!(lease.lost(), Some(Loss::Unreachable), "what was lost stays lost");
}

#[test]
fn the_end_of_a_lease_is_told_to_all_who_hold_by_it_and_to_nobody_else() {
    let desk = served();
    let leases = [Lease::endless(), Lease::endless()];
    let [held, released, elsewhere, waits] = [0; 4].map(|_| ask(&desk));
    for ((number, _), lease) in [(&held, &leases[0]), (&released, &leases[0]), (&elsewhere, &leases[1])] {
        desk.answer(*number, granted(lease));
    }
    desk.release(released.0, false);
    desk.end_lease(&leases[0], Loss::Taken);
    let told = [held, released, elsewhere, waits].map(|(_, asker)| asker.told());
    assert_eq!(told, [vec!["granted", "lost"], vec!["granted"], vec!["granted"], vec![]]);
    assert_eq!((leases[0].lost(), leases[1].lost()), (Some(Loss::Taken), None));
}

#[test]
fn of_several_reasons_of_a_loss_the_first_is_kept() {
    let lease = Lease::endless();
    lease.end(Loss::Closed);
    lease.end(Loss::Worker);
    assert_eq!(lease.lost(), Some(Loss::Closed));
}

#[test]
fn the_end_of_the_lock_worker_fails_what_waits_and_ends_what_is_held() {
    let desk = served();
    let ([held, lost, waits], leases) = ([0; 3].map(|_| ask(&desk)), [Lease::endless(), Lease::endless()]);
    for ((number, _), lease) in [&held, &lost].into_iter().zip(&leases) {
        desk.answer(*number, granted(lease));
    }
    desk.end_lease(&leases[1], Loss::Taken);
    desk.end("gone");
    desk.end("once more");
    let late = ask(&desk);
    let told = [held, lost, waits, late].map(|(_, asker)| asker.told());
    assert_eq!(told, [vec!["granted", "lost"], vec!["granted", "lost", "lost"], vec!["failed"], vec!["failed"]]);
    assert_eq!(leases.map(|lease| lease.lost()), [Some(Loss::Worker), Some(Loss::Taken)]);
    assert_eq!((tasks(&desk), known(&desk)), (vec![], 0));
}

#[cfg(feature = "audit")]
#[test]
fn the_audit_says_which_requests_are_left() {
    let desk = served();
    let ((number, asker), (held, holder)) = (ask(&desk), ask(&desk));
    desk.answer(held, granted(&Lease::endless()));
    holder.leave();
    assert_eq!(desk.left(), Vec::<String>::new());
    asker.leave();
    assert_eq!(desk.left(), [format!("request {number} at its desk, which is over")]);
    desk.withdraw(number);
    assert_eq!(desk.left(), Vec::<String>::new());
}
