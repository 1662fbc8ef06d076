//! Two that meet at an exchanger.

use sablock::primitives::exchanger::EXCHANGER;

use super::*;

fn value(outcome: Outcome) -> u32 {
    let Outcome::Granted { abandoned_by: None, found } = outcome else { panic!("{outcome:?}") };
    found
}

/// Two come, and one may take its wait back before they meet: values go both ways or not at all.
#[test]
fn two_meet_unless_one_gives_up() {
    loom::model(|| {
        let engine = Engine::new(1, 70_000, Patience::default(), Box::new(ManualClock::default()));
        let shared = Arc::new((engine, [AtomicU32::new(0), AtomicU32::new(0)]));
        let place = |shared: &(Engine, [AtomicU32; 2])| {
            // SAFETY: two aligned atomics; every thread of the model keeps them until its waits are over.
            unsafe { Place::new(NonNull::from(&shared.1[0]).cast(), 0) }
        };
        let fickle = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut waits = EventLoop::new(&shared.0, shared.0.agents.add(0).unwrap());
                let request = Request::Hold(Hold::exchange(3));
                match waits.wait(&EXCHANGER, place(&shared), request, Limit::Endless).unwrap() {
                    Reply::Now(outcome) => Some(value(outcome)),
                    Reply::Pending { token, .. } if waits.cancel(token).is_some() => None,
                    Reply::Pending { .. } => Some(value(waits.next_settled().expect("it was met").outcome.unwrap())),
                }
            })
        };
        let agent = shared.0.agents.add(0).unwrap();
        let mut waits = EventLoop::new(&shared.0, agent);
        let request = Request::Hold(Hold::exchange(5));
        let reply = waits.wait(&EXCHANGER, place(&shared), request, Limit::Endless).unwrap();
        let met = fickle.join().unwrap();
        let found = match reply {
            Reply::Now(outcome) => Some(value(outcome)),
            Reply::Pending { .. } => waits.next_settled().map(|settled| value(settled.outcome.unwrap())),
        };
        assert!(matches!((met, found), (Some(5), Some(3)) | (None, None)), "{met:?} {found:?}");
        waits.end();
        assert_eq!(shared.1.each_ref().map(|word| word.load(Ordering::SeqCst)), [0, 0]);
    });
}
