//! Requests for what is kept outside, one by one: what is asked when, what goes back in which order, and what is forgotten.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::agents::{Message, Wake};
use crate::clients::outer::tests::event_loop;
use crate::clients::{ClientLoop, InStore, Name, Whose};
use crate::desk::testing::{granted, question, served, tasks};
use crate::desk::{self, Answer, Desk, Lease};
use crate::engine::{Client, Limit, Mode, Outcome, Reply};
use crate::sync;

/// Notes in order what becomes of a request that nobody answers.
#[derive(Clone, Default)]
struct Noted {
    steps: Arc<Mutex<Vec<&'static str>>>,
    until: Arc<Mutex<Option<Instant>>>,
    /// The clock ends it while it is asked for.
    is_late: bool,
    /// The thread is to end while something is left of it.
    is_interrupted: bool,
}

impl Outside for Noted {
    type Question = ();
    type Answer = ();

    fn ask(request: &Arc<OuterRequest<Self>>, (): ()) {
        request.kind.steps.lock().push("asked");
        if request.kind.is_late {
            request.give_up();
        }
    }

    fn ask_here(request: &Arc<OuterRequest<Self>>, (): (), until: Instant) {
        *request.kind.until.lock() = Some(until);
        Self::ask(request, ());
    }

    fn is_granted((): &()) -> bool {
        true
    }

    fn take_in(&self, _: u64, (): ()) -> (Option<Held>, Told) {
        (None, Told::Store(Answer::Refused))
    }

    fn give_up(request: &Arc<OuterRequest<Self>>, _: Option<()>) {
        request.kind.steps.lock().push("given up");
    }

    fn leave_blocking(request: &Arc<OuterRequest<Self>>, _: &mut dyn Caller) -> Result<(), Failure> {
        request.kind.steps.lock().push("left");
        if request.kind.is_interrupted { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

fn ask(here: &mut ClientLoop<'static>, desk: &Arc<Desk>, is_part: bool) -> (u32, u64) {
    let asked = here.ask_outside(InStore::at(desk, &question(), is_part), question(), Limit::Endless, None);
    let Ok((Reply::Pending { token, .. }, number)) = asked else { panic!("it does not wait") };
    (token, number)
}

/// A request that was granted, of which its code has learned.
fn hold(here: &mut ClientLoop<'static>, desk: &Arc<Desk>, is_part: bool) -> u64 {
    let (_, number) = ask(here, desk, is_part);
    assert!(desk.answer(number, granted(&Lease::endless())));
    assert!(here.next_settled().is_some() && here.take_told().is_some());
    here.clients.outer.accept();
    number
}

#[test]
fn a_blocked_thread_whose_time_is_over_waits_until_nothing_is_left_of_its_request() {
    for is_interrupted in [false, true] {
        let here = event_loop();
        let (kind, at) = (Noted { is_interrupted, ..Noted::default() }, sync::now());
        let (engine, limit) = (here.engine(), Limit::Until(at));
        let agent = Arc::clone(here.agent());
        let answered = ClientLoop::ask_outside_blocking(engine, &agent, kind.clone(), (), limit, &mut || true);
        assert_eq!(matches!(answered, Err(Failure::Interrupted)), is_interrupted);
        assert_eq!(*kind.steps.lock(), ["asked", "given up", "left"]);
        assert_eq!(*kind.until.lock(), Some(at), "it does not see to it itself for longer");
        here.end();
    }
}

#[test]
fn a_request_that_the_clock_ends_while_it_is_asked_for_is_given_up_once_it_was() {
    let mut here = event_loop();
    let kind = Noted { is_late: true, ..Noted::default() };
    here.ask_outside(kind.clone(), (), Limit::Endless, None).unwrap();
    assert_eq!(*kind.steps.lock(), ["asked", "given up", "given up"]);
    here.end();
}

#[test]
fn what_a_thread_holds_outside_is_ended_in_reverse_order() {
    let (desk, mut here) = (Arc::new(served()), event_loop());
    let opened = here.tell_store(&desk, question());
    let [first, second] = [(); 2].map(|()| hold(&mut here, &desk, false));
    tasks(&desk);
    here.end();
    assert_eq!(tasks(&desk), [('R', second), ('R', first), ('r', opened)]);
}

#[test]
fn a_lock_outside_that_is_a_part_of_several_is_left_unmarked_until_its_code_is_in() {
    for is_in in [false, true] {
        let (desk, mut here) = (Arc::new(served()), event_loop());
        let number = hold(&mut here, &desk, true);
        if is_in && let Some(Held::Store(hold)) = here.held(number) {
            hold.note_in(true);
        }
        tasks(&desk);
        here.end();
        assert_eq!(tasks(&desk), [(if is_in { 'R' } else { 'r' }, number)]);
    }
}

#[test]
fn a_hold_outside_that_was_removed_or_refused_is_known_no_more() {
    let (desk, mut here) = (Arc::new(served()), event_loop());
    let number = hold(&mut here, &desk, false);
    assert!(here.remove_held(number).is_some() && here.held(number).is_none());
    let (_, number) = ask(&mut here, &desk, false);
    assert!(desk.answer(number, granted(&Lease::endless())) && here.next_settled().is_some());
    assert!(here.held(number).is_some());
    here.refuse();
    assert!(here.held(number).is_none());
    here.end();
}

#[test]
fn losses_are_told_in_their_order_and_only_those_of_what_is_held() {
    let (desk, mut here) = (Arc::new(served()), event_loop());
    let [released, first, second] = [(); 3].map(|()| hold(&mut here, &desk, false));
    for number in [released, second, first] {
        here.clients.message(Message::Lost(number));
    }
    here.remove_held(released).unwrap().give_back(true);
    assert_eq!([(); 3].map(|()| here.next_lost()), [Some(second), Some(first), None]);
    here.end();
}

#[test]
fn the_loss_of_a_lock_makes_its_loop_turn() {
    struct Counts(Arc<AtomicUsize>);
    impl Wake for Counts {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let here = event_loop();
    let request = OuterRequest::new(here.engine(), here.agent(), InStore::at(&Arc::default(), &question(), false));
    let wakes = Arc::<AtomicUsize>::default();
    here.agent().set_waker(Some(Box::new(Counts(Arc::clone(&wakes)))));
    desk::Asker::lost(&*request);
    assert_eq!(wakes.load(Ordering::SeqCst), 1);
    here.end();
}

#[test]
fn a_store_whose_answer_nobody_awaits_any_more_learns_of_that() {
    let here = event_loop();
    let request = OuterRequest::new(here.engine(), here.agent(), InStore::at(&Arc::default(), &question(), false));
    assert!(!desk::Asker::answer(&*request, granted(&Lease::endless())));
    here.end();
}

/// A request for a name that is granted at once.
fn take(here: &mut ClientLoop<'static>, unit: u16) -> (u32, usize) {
    let (request, reply) = here.request_name(Name::new(77, &[unit]), Mode::Exclusive, false, Limit::Endless).unwrap();
    assert!(matches!(reply, Reply::Now(Outcome::Granted { .. })));
    (request.number, request.place.address())
}

#[test]
fn what_is_beside_a_wait_goes_back_from_the_outside_inwards_and_all_of_it() {
    let (desk, mut here) = (Arc::<Desk>::default(), event_loop());
    let (first, second, elsewhere) = (take(&mut here, 1), take(&mut here, 2), take(&mut here, 3));
    let outer = hold(&mut here, &desk, false);
    let numbers = [first.0, second.0].into_iter().map(|number| (number, None));
    let beside = here.held_by(numbers, &[outer as i64]);
    let late = Late { request: OuterRequest::new(here.engine(), here.agent(), Noted::default()), beside: Some(beside) };
    let gives_back = [first, second, elsewhere].map(|(_, address)| late.gives_back(address));
    assert_eq!(gives_back, [true, true, false]);

    let (names, seen) = (here.clients.names.names, Arc::<Mutex<Vec<usize>>>::default());
    let held = move || [1, 2, 3].map(|unit| names.holders(&Name::new(77, &[unit])).len()).into_iter().sum();
    tasks(&desk);
    let noted = Arc::clone(&seen);
    desk.serve(Box::new(move || noted.lock().push(held())));
    late.expired(here.engine());
    assert_eq!(tasks(&desk), [('r', outer)]);
    assert_eq!(*seen.lock(), [3, 3], "when it was served, and when it had to release");
    assert_eq!(held(), 1, "both names");
    here.end();
}

#[test]
fn what_is_awaited_is_the_end_of_the_request_that_was_given_up_last() {
    let mut here = event_loop();
    for is_last_first in [false, true] {
        let requests = [(); 2].map(|()| {
            let kind = InStore::at(&Arc::new(served()), &question(), false);
            OuterRequest::new(here.engine(), here.agent(), kind)
        });
        let indices = requests.each_ref().map(|request| here.clients.outer.waits.insert(Arc::clone(request) as _));
        let order = if is_last_first { [1, 0] } else { [0, 1] };
        let agent = Arc::clone(here.agent());
        for index in order {
            here.clients.left(&agent, Whose::Outer(indices[index]), 0);
        }
        let last = Arc::clone(&requests[order[1]]) as Arc<dyn OuterWait>;
        assert!(here.clients.outer.given_up.take().is_some_and(|given_up| Arc::ptr_eq(&given_up, &last)));
    }
    here.end();
}
