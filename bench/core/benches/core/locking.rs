//! Taking and freeing a lock: alone, and among threads that do nothing else.

use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use parking_lot::FairMutex;

use crate::counters::{Counter, Sablock, TwoExchanges};

/// One pair of lock and unlock.
pub fn uncontended(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("uncontended");
    pair::<TwoExchanges>(&mut group, "two compare-exchanges");
    pair::<Sablock<true>>(&mut group, "sablock");
    pair::<Sablock<false>>(&mut group, "sablock, through the engine");
    pair::<parking_lot::Mutex<u64>>(&mut group, "parking_lot::Mutex");
    pair::<Mutex<u64>>(&mut group, "std::sync::Mutex");
}

fn pair<C: Counter>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str) {
    let counter = C::default();
    let thread = C::Thread::default();
    let mut holds = 0;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            holds += 1;
            counter.hold(&thread, |count| *count += 1);
        });
    });
    assert_eq!(counter.total(), holds, "{name}: holds were lost");
}

/// The holds that each thread has in one iteration.
const HOLDS: u64 = 1000;

/// All threads loop over one lock. The times are for each thread's thousand holds.
pub fn contended(criterion: &mut Criterion) {
    for threads in [2, 4, 8] {
        for hold in [0, 1].map(Duration::from_micros) {
            let mut group = criterion.benchmark_group(format!("{threads} threads, {} µs", hold.as_micros()));
            group.throughput(Throughput::Elements(threads as u64 * HOLDS));
            // Long samples only: threads that are waking up meet nobody.
            group.sampling_mode(SamplingMode::Flat);
            contend::<parking_lot::Mutex<u64>>(&mut group, "parking_lot::Mutex", threads, hold);
            contend::<Sablock<true>>(&mut group, "sablock", threads, hold);
            contend::<FairMutex<u64>>(&mut group, "parking_lot::FairMutex", threads, hold);
            contend::<Mutex<u64>>(&mut group, "std::sync::Mutex", threads, hold);
        }
    }
}

fn contend<C: Counter>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, threads: usize, hold: Duration) {
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let counter = C::default();
            let together = Barrier::new(threads);
            let work = || {
                let thread = C::Thread::default();
                together.wait();
                let start = Instant::now();
                for _ in 0..iterations * HOLDS {
                    counter.hold(&thread, |count| count_slowly(count, hold));
                }
                (start, Instant::now())
            };
            let (starts, ends): (Vec<_>, Vec<_>) = thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                workers.into_iter().map(|worker| worker.join().expect("it does not panic")).unzip()
            });
            let took = ends.into_iter().max().expect("some threads") - starts.into_iter().min().expect("some threads");
            assert_eq!(counter.total(), threads as u64 * iterations * HOLDS, "{name}: two threads were inside at once");
            took
        });
    });
}

/// A read, the hold, and a write: two holders at once lose counts.
fn count_slowly(count: &mut u64, hold: Duration) {
    let seen = *count;
    if !hold.is_zero() {
        let start = Instant::now();
        while start.elapsed() < hold {
            std::hint::spin_loop();
        }
    }
    *count = std::hint::black_box(seen) + 1;
}
