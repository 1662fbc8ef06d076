//! A barrier that several threads reset.

use sablock::primitives::barrier::BARRIER;

use super::*;

/// Two words.
struct Round {
    engine: Engine,
    words: [AtomicU32; 2],
}

impl Round {
    fn place(&self) -> Place {
        // SAFETY: two aligned atomics; every thread of the model keeps them until its waits are over.
        unsafe { Place::new(NonNull::from(&self.words[0]).cast(), 0) }
    }

    fn reset(&self, agent: &Arc<Agent>) {
        self.engine.change(agent, &BARRIER, self.place(), Change::Reset).unwrap();
    }
}

/// One that comes behind its own reset, while another thread resets, waits or is refused; it is not forgotten.
#[test]
fn a_party_between_two_resets() {
    loom::model(|| {
        let engine = Engine::new(1, 70_000, Patience::default(), Box::new(ManualClock::default()));
        let round = Arc::new(Round { engine, words: Default::default() });
        let other = {
            let round = Arc::clone(&round);
            thread::spawn(move || round.reset(&round.engine.agents.add(0).unwrap()))
        };
        let (mut waits, _) = event_loop(&round.engine);
        let agent = Arc::clone(waits.agent());
        round.reset(&agent);
        let party = Request::Hold(Hold::party(2));
        let reply = waits.wait(&BARRIER, round.place(), party, Limit::Endless).unwrap();
        other.join().unwrap();
        round.reset(&agent);
        match reply {
            Reply::Pending { .. } => {
                let settled = waits.next_settled().expect("the reset has broken it");
                assert_eq!(settled.outcome, Ok(Outcome::Refused { found: 0 }));
            }
            Reply::Now(outcome) => assert_eq!(outcome, Outcome::Refused { found: 0 }),
        }
        let again = waits.wait(&BARRIER, round.place(), party, Limit::Endless).unwrap();
        assert!(matches!(again, Reply::Pending { .. }), "it is new");
        round.reset(&agent);
        waits.next_settled().expect("the reset has broken it");
    });
}
