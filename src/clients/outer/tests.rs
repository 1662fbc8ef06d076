//! A request for a lock outside: settled, against its cancel, its time, the end of its thread, and an interruption.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::agents::Wake;
use crate::clients::{Clients, InStore, Name, Names};
use crate::desk::testing::{granted, question, served, tasks};
use crate::desk::{Answer, Desk, Lease, Loss, Question, Task};
use crate::engine::clock::Clock;
use crate::engine::{Arena, EventLoop, Mode, Patience, Settled, TakesBack};

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(64, 70_000, Patience::default(), Box::new(Clock::new(engine))))
}

fn names() -> &'static Names<'static> {
    static NAMES: OnceLock<Names<'static>> = OnceLock::new();
    NAMES.get_or_init(|| Names::new(engine()))
}

pub(in crate::clients) fn event_loop() -> ClientLoop<'static> {
    EventLoop::with_clients(engine(), engine().agents.add(1).unwrap(), Clients::new(names()))
}

/// Whether something that goes back beside a wait has gone back.
#[derive(Default)]
pub(in crate::clients) struct Back(pub(in crate::clients) AtomicBool);

impl Expiry for Back {
    fn expired(&self, _: &dyn TakesBack) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn gives_back(&self, _: usize) -> bool {
        false
    }
}

fn in_store(desk: &Arc<Desk>) -> InStore {
    InStore::at(desk, &question(), false)
}

fn store_hold<'h>(here: &'h mut ClientLoop<'static>, number: u64) -> Option<&'h mut StoreHold> {
    match here.held(number)? {
        Held::Store(hold) => Some(hold),
        Held::File(_) => panic!("a file"),
    }
}

fn release(here: &mut ClientLoop<'static>, number: u64, has_ended: bool) -> Option<Loss> {
    let lost = store_hold(here, number)?.release(has_ended);
    here.remove_held(number);
    lost
}

/// The answer to the request that is over.
fn told(here: &mut ClientLoop<'static>) -> Option<(u64, Answer)> {
    here.take_told().map(answer_of)
}

fn answer_of((number, told): (u64, Told)) -> (u64, Answer) {
    let Told::Store(answer) = told else { panic!("of another kind") };
    (number, answer)
}

fn loss(here: &mut ClientLoop<'static>, number: u64) -> Option<Loss> {
    store_hold(here, number)?.lost()
}

fn desk() -> Arc<Desk> {
    Arc::new(served())
}

/// The number of the next request.
fn asked(desk: &Desk) -> u64 {
    loop {
        match desk.next() {
            Some(Task::Ask(number, _)) => return number,
            Some(_) => panic!("another task"),
            None => thread::yield_now(),
        }
    }
}

fn ask(here: &mut ClientLoop<'static>, desk: &Arc<Desk>, limit: Limit) -> (u32, u64) {
    let Ok((Reply::Pending { token, .. }, number)) = here.ask_outside(in_store(desk), question(), limit, None) else {
        panic!()
    };
    (token, number)
}

/// Blocks until there is an answer, a deadline, or `goes_on` returns false.
fn block(
    here: &mut ClientLoop<'static>,
    desk: &Arc<Desk>,
    limit: Limit,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Option<(u64, Answer)>, Failure> {
    let agent = Arc::clone(here.agent());
    let answered = ClientLoop::ask_outside_blocking(engine(), &agent, in_store(desk), question(), limit, &mut goes_on)?;
    Ok(answered.map(|answered| answer_of(here.take_in(answered))))
}

fn is_granted(answer: &Answer) -> bool {
    matches!(answer, Answer::Granted { fence: 7, .. })
}

#[test]
fn a_blocked_thread_gets_its_answer_and_releases_what_it_got() {
    let desk = desk();
    let store = Arc::clone(&desk);
    let worker = thread::spawn(move || {
        [granted(&Lease::endless()), Answer::Refused, Answer::Failed("why".into())].map(|answer| {
            let number = asked(&store);
            assert!(store.answer(number, answer));
            assert!(!store.answer(number, Answer::Refused), "a second answer");
            number
        })
    });
    let mut here = event_loop();
    let answers = [0; 3].map(|_| block(&mut here, &desk, Limit::Endless, || true).unwrap().unwrap());
    assert_eq!(answers.each_ref().map(|(number, _)| *number), worker.join().unwrap());
    let [(number, first), (_, second), (_, third)] = answers;
    assert!(is_granted(&first) && matches!(second, Answer::Refused) && matches!(third, Answer::Failed(_)));
    assert_eq!(release(&mut here, number, true), None);
    release(&mut here, number, true);
    assert_eq!(tasks(&desk), [('R', number)]);
    assert!(here.next_settled().is_none(), "nothing of it was for its loop");
    here.end();
}

#[test]
fn a_blocked_thread_whose_time_is_over_or_that_is_to_end_withdraws() {
    let (desk, mut here) = (desk(), event_loop());
    for limit in [Limit::Once, Limit::after(Duration::from_millis(20))] {
        assert!(matches!(block(&mut here, &desk, limit, || true), Ok(None)));
        let [('a', number), ('c', cancelled)] = tasks(&desk)[..] else { panic!() };
        assert!(number == cancelled && !desk.answer(number, granted(&Lease::endless())));
    }
    if !cfg!(feature = "long-slices") {
        assert!(matches!(block(&mut here, &desk, Limit::Endless, || false), Err(Failure::Interrupted)));
        assert!(matches!(tasks(&desk)[..], [('a', _), ('c', _)]));
    }
    here.end();
}

#[test]
fn what_is_granted_to_a_blocked_thread_whose_end_has_begun_is_released_unmarked() {
    let desk = desk();
    let store = Arc::clone(&desk);
    let worker = thread::spawn(move || {
        let number = asked(&store);
        assert!(store.answer(number, granted(&Lease::endless())));
        number
    });
    let mut here = event_loop();
    assert!(matches!(block(&mut here, &desk, Limit::Endless, || false), Err(Failure::Interrupted)));
    assert_eq!(tasks(&desk), [('r', worker.join().unwrap())]);
    here.end();
}

#[test]
fn a_loop_gets_its_answer_once_and_learns_of_the_loss() {
    let (desk, mut here, lease) = (desk(), event_loop(), Lease::endless());
    let (token, number) = ask(&mut here, &desk, Limit::Endless);
    assert!(here.next_settled().is_none());
    assert!(desk.answer(number, granted(&lease)));
    // Lost before its loop has looked.
    desk.end_lease(&lease, Loss::Taken);
    assert!(matches!(here.next_settled(), Some(Settled { token: other, .. }) if other == token));
    assert!(matches!(told(&mut here), Some((other, answer)) if other == number && is_granted(&answer)));
    assert!(told(&mut here).is_none() && here.next_settled().is_none());
    assert_eq!((here.next_lost(), here.next_lost()), (Some(number), None));
    assert_eq!((loss(&mut here, number), release(&mut here, number, false)), (Some(Loss::Taken), Some(Loss::Taken)));
    assert_eq!(tasks(&desk), [('a', number), ('R', number)], "it was lost inside");
    let (_, number) = ask(&mut here, &desk, Limit::Endless);
    assert!(desk.answer(number, granted(&lease)) && here.next_settled().is_some());
    assert!(told(&mut here).is_some());
    store_hold(&mut here, number).unwrap().note_in(false);
    assert_eq!(release(&mut here, number, false), Some(Loss::Taken));
    assert_eq!(tasks(&desk), [('a', number), ('r', number)], "no code has run with it");
    for answer in [Answer::Refused, Answer::Failed("why".into())] {
        let (_, number) = ask(&mut here, &desk, Limit::Endless);
        assert!(desk.answer(number, answer));
        assert!(matches!(here.next_settled(), Some(Settled { outcome: Ok(Outcome::Refused { .. }), .. })));
        assert!(matches!(told(&mut here), Some((_, Answer::Refused | Answer::Failed(_)))));
        assert_eq!(tasks(&desk), [('a', number)]);
    }
    here.end();
}

#[test]
fn a_request_that_is_taken_back_before_and_after_its_answer_holds_nothing() {
    let (desk, mut here) = (desk(), event_loop());
    let (token, number) = ask(&mut here, &desk, Limit::Revocable);
    assert!(here.cancel(token).is_some() && here.cancel(token).is_none());
    assert!(!desk.answer(number, granted(&Lease::endless())));
    assert_eq!(tasks(&desk), [('a', number), ('c', number)]);
    let (token, number) = ask(&mut here, &desk, Limit::Revocable);
    assert!(desk.answer(number, granted(&Lease::endless())));
    assert!(here.cancel(token).is_some() && here.next_settled().is_none());
    assert_eq!(tasks(&desk), [('a', number), ('r', number)]);
    let (token, number) = ask(&mut here, &desk, Limit::Revocable);
    assert!(desk.answer(number, granted(&Lease::endless())) && here.next_settled().is_some());
    assert!(here.cancel(token).is_none(), "it was returned");
    here.refuse();
    assert_eq!(tasks(&desk), [('a', number), ('r', number)]);
    here.end();
}

/// Notes whether the answer is there when its loop is woken for it.
struct Looks(Arc<dyn OuterWait>, Arc<AtomicBool>);

impl Wake for Looks {
    fn wake(&self) {
        self.1.store(self.0.is_answered(), Ordering::SeqCst);
    }
}

#[test]
fn an_answer_is_there_when_its_wait_is_settled() {
    let (desk, mut here, is_there) = (desk(), event_loop(), Arc::<AtomicBool>::default());
    let (_, number) = ask(&mut here, &desk, Limit::Endless);
    let request = here.clients.outer.waits.iter().next().map(|(_, request)| Arc::clone(request)).unwrap();
    here.agent().set_waker(Some(Box::new(Looks(request, Arc::clone(&is_there)))));
    assert!(desk.answer(number, Answer::Refused) && is_there.load(Ordering::SeqCst));
    here.end();
}

#[test]
fn the_clock_withdraws_a_request_or_releases_its_grant_though_its_loop_does_not_turn() {
    let (desk, mut here) = (desk(), event_loop());
    for is_granted in [false, true] {
        let back = Arc::<Back>::default();
        let limit = Limit::after(Duration::from_millis(if is_granted { 300 } else { 5 }));
        let beside = Some(Arc::clone(&back) as Arc<dyn Expiry>);
        let Ok((Reply::Pending { .. }, number)) = here.ask_outside(in_store(&desk), question(), limit, beside) else {
            panic!()
        };
        if is_granted {
            assert!(desk.answer(number, granted(&Lease::endless())));
        }
        assert_eq!(asked(&desk), number);
        let end = Instant::now() + Duration::from_secs(20);
        while !back.0.load(Ordering::SeqCst) {
            assert!(Instant::now() < end, "nothing went back");
            thread::yield_now();
        }
        assert_eq!(tasks(&desk), [(if is_granted { 'r' } else { 'c' }, number)]);
        assert!(!desk.answer(number, granted(&Lease::endless())));
        let settled = here.next_settled().unwrap();
        assert_eq!((settled.outcome, told(&mut here).is_none()), (Ok(Outcome::TimedOut), true));
        assert!(here.next_settled().is_none() && tasks(&desk).is_empty());
    }
    here.end();
}

#[test]
fn what_is_asked_for_after_its_time_is_withdrawn() {
    let (desk, here) = (desk(), event_loop());
    let request = OuterRequest::new(engine(), here.agent(), in_store(&desk));
    // By the clock, before its thread came to ask.
    request.give_up();
    InStore::ask(&request, question());
    request.asked();
    assert_eq!(tasks(&desk), [('a', request.number), ('c', request.number)]);
    here.end();
}

#[test]
fn a_refusal_that_came_in_time_stands() {
    let (desk, mut here) = (desk(), event_loop());
    let back = Arc::<Back>::default();
    let beside = Some(Arc::clone(&back) as Arc<dyn Expiry>);
    let limit = Limit::after(Duration::from_millis(100));
    let Ok((Reply::Pending { .. }, number)) = here.ask_outside(in_store(&desk), question(), limit, beside) else {
        panic!()
    };
    assert!(desk.answer(number, Answer::Refused));
    // Another deadline of the same clock, behind that one.
    let (_, later) = ask(&mut here, &desk, Limit::after(Duration::from_millis(120)));
    let cancelled = ('c', later);
    while !tasks(&desk).contains(&cancelled) {
        thread::yield_now();
    }
    assert!(!back.0.load(Ordering::SeqCst));
    here.next_settled().unwrap();
    assert!(matches!(told(&mut here), Some((_, Answer::Refused))));
    here.end();
}

#[test]
fn the_end_of_a_thread_gives_back_unmarked_what_its_code_never_knew_and_marked_what_it_held() {
    let (desk, mut here) = (desk(), event_loop());
    let mut ask = |is_shared| {
        let question = Question { is_shared, ..question() };
        here.ask_outside(InStore::at(&desk, &question, false), question, Limit::Endless, None).unwrap().1
    };
    let all = [false, true, false, false, false, false].map(&mut ask);
    let [held, shared, outside, returned, granted_only, waits] = all;
    tasks(&desk);
    for number in [held, shared, outside, returned] {
        desk.answer(number, granted(&Lease::endless()));
        here.next_settled().unwrap();
        told(&mut here).unwrap();
    }
    store_hold(&mut here, outside).unwrap().note_in(false);
    let opened = here.tell_store(&desk, question());
    desk.answer(granted_only, granted(&Lease::endless()));
    here.end();
    let mut ended = tasks(&desk);
    ended.sort_by_key(|task| task.1);
    let expected = [
        ('R', held),
        ('r', shared),
        ('r', outside),
        ('r', returned),
        ('r', granted_only),
        ('c', waits),
        ('a', opened),
        ('r', opened),
    ];
    assert_eq!(ended, expected);
}

#[test]
fn what_its_code_has_learned_of_is_marked_when_its_thread_ends_whatever_was_returned_last() {
    for is_another_returned in [false, true] {
        let (desk, mut here) = (desk(), event_loop());
        let (_, number) = ask(&mut here, &desk, Limit::Endless);
        desk.answer(number, granted(&Lease::endless()));
        assert!(here.next_settled().is_some() && told(&mut here).is_some() && here.next_settled().is_none());
        if is_another_returned {
            ask(&mut here, &desk, Limit::after(Duration::from_millis(5)));
            while here.next_settled().is_none() {
                thread::yield_now();
            }
        }
        here.end();
        let of_it = tasks(&desk).into_iter().filter(|task| task.1 == number);
        assert_eq!(of_it.collect::<Vec<_>>(), [('a', number), ('R', number)]);
    }
}

#[test]
fn the_lock_outside_is_released_before_the_name_of_the_process() {
    let (desk, mut here) = (Arc::new(Desk::default()), event_loop());
    let name = || Name::new(9, &[97]);
    let (_, reply) = here.request_name(name(), Mode::Exclusive, true, Limit::Endless).unwrap();
    assert!(matches!(reply, Reply::Now(Outcome::Granted { .. })));
    let holders: Arc<std::sync::Mutex<Vec<usize>>> = Arc::default();
    let (_, number) = ask(&mut here, &desk, Limit::Endless);
    desk.answer(number, granted(&Lease::endless()));
    here.next_settled().unwrap();
    tasks(&desk);
    let seen = Arc::clone(&holders);
    desk.serve(Box::new(move || seen.lock().unwrap().push(names().holders(&name()).len())));
    here.end();
    assert_eq!(*holders.lock().unwrap(), [1, 1], "when it was served, and when it had to release");
}

#[test]
fn the_end_of_the_lock_worker_fails_what_waits_and_ends_what_is_held() {
    let (desk, mut here) = (desk(), event_loop());
    let (_, held) = ask(&mut here, &desk, Limit::Endless);
    desk.answer(held, granted(&Lease::endless()));
    here.next_settled().unwrap();
    told(&mut here).unwrap();
    ask(&mut here, &desk, Limit::Endless);
    desk.end("gone");
    desk.end("once more");
    assert!(here.next_settled().is_some());
    assert!(matches!(told(&mut here), Some((_, Answer::Failed(reason))) if reason == "gone"));
    assert!(here.next_settled().is_none());
    assert_eq!((here.next_lost(), loss(&mut here, held)), (Some(held), Some(Loss::Worker)));
    ask(&mut here, &desk, Limit::Endless);
    assert!(here.next_settled().is_some());
    assert!(matches!(told(&mut here), Some((_, Answer::Failed(reason))) if reason == "gone"), "the first reason");
    assert!(matches!(block(&mut here, &desk, Limit::Endless, || true), Ok(Some((_, Answer::Failed(_))))));
    here.end();
}

#[cfg(feature = "audit")]
#[test]
fn the_audit_says_which_requests_are_left() {
    let (desk, mut here) = (desk(), event_loop());
    let (token, number) = ask(&mut here, &desk, Limit::Endless);
    assert_eq!(desk.left(), Vec::<String>::new());
    here.clients.outer.waits = Arena::default();
    here.cancel(token);
    assert_eq!(desk.left(), [format!("request {number} at its desk, of thread 1, which waits for it no more")]);
    desk.withdraw(number);
    assert_eq!(desk.left(), Vec::<String>::new());
    here.end();
}
