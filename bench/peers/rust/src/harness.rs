//! Times one operation in short bursts with pauses between them: the same loop as ../harness.h, so
//! that the ratios between the programs mean something. Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dial9::core::clock_monotonic_ns;

pub const WARM_UP_BURSTS: u32 = 5;
pub const THREAD_COUNTS: [u32; 2] = [1, 2];

#[derive(Clone)]
pub struct Options {
    pub bursts: u32,
    pub burst_ops: u32,
    pub pause: Duration,
    pub directory: PathBuf,
}

impl Options {
    /// `--bursts N --burst-ops N --pause-us N --directory PATH`, or what is wrong with it.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Options {
            bursts: 40,
            burst_ops: 4096,
            pause: Duration::from_micros(3000),
            directory: PathBuf::new(),
        };
        let mut args = args;
        while let Some(key) = args.next() {
            let value = args.next().ok_or(format!("no value after '{key}'"))?;
            let number = || value.parse::<u32>().map_err(|_| format!("'{key} {value}'"));
            match key.as_str() {
                "--bursts" => options.bursts = number()?.max(1),
                "--burst-ops" => options.burst_ops = number()?.max(1),
                "--pause-us" => options.pause = Duration::from_micros(number()?.into()),
                "--directory" => options.directory = PathBuf::from(value),
                _ => return Err(format!("unknown option '{key}'")),
            }
        }
        if options.directory.as_os_str().is_empty() {
            return Err("--directory PATH is needed".to_string());
        }
        Ok(options)
    }

    /// Operations of one case on `threads` threads, warm-up included.
    pub fn operations(&self, threads: u32) -> u64 {
        u64::from(threads) * u64::from(WARM_UP_BURSTS + self.bursts) * u64::from(self.burst_ops)
    }
}

/// ns an operation, over the bursts of all threads.
pub struct Timing {
    pub median_ns: f64,
    pub min_ns: f64,
}

/// Calls `make()` once on each thread; what it returns does one burst of `burst_ops` operations.
pub fn measure<B, M>(options: &Options, threads: u32, make: M) -> Timing
where
    B: FnMut(u32),
    M: Fn() -> B + Sync,
{
    let arrived = AtomicU64::new(0);
    let work = || {
        let mut burst_of = make();
        let mut per_op_ns = Vec::new();
        for burst in 0..WARM_UP_BURSTS + options.bursts {
            std::thread::sleep(options.pause);
            arrived.fetch_add(1, Ordering::AcqRel);
            while arrived.load(Ordering::Acquire) < u64::from(threads) * u64::from(burst + 1) {
                std::hint::spin_loop();
            }
            let begin_ns = clock_monotonic_ns();
            burst_of(options.burst_ops);
            let end_ns = clock_monotonic_ns();
            if burst >= WARM_UP_BURSTS {
                per_op_ns.push((end_ns - begin_ns) as f64 / f64::from(options.burst_ops));
            }
        }
        per_op_ns
    };
    let mut all: Vec<f64> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .flat_map(|thread| thread.join().expect("a measuring thread panicked"))
            .collect()
    });
    all.sort_by(f64::total_cmp);
    Timing {
        median_ns: all[all.len() / 2],
        min_ns: all[0],
    }
}

/// One line of JSON on stdout, read by bench/peers/compare.py.
pub fn report(case: &str, threads: u32, timing: &Timing, lost: Option<i64>) {
    let lost = lost.map_or("null".to_string(), |n| n.to_string());
    let Timing { median_ns, min_ns } = timing;
    println!(
        "{{\"case\":\"{case}\",\"threads\":{threads},\"median_ns\":{median_ns:.3},\
         \"min_ns\":{min_ns:.3},\"lost\":{lost}}}"
    );
}
