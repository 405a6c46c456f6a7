//! The original, crate `dial9`, recording into a directory through its public API: a three-field
//! event, a span, a poll's two events by hand, and polls as its tokio hooks record them. Strongest
//! property: what it recorded is decoded again at the end; what is missing is reported as lost.
//! Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
mod cases;
mod harness;
mod readback;

use harness::Options;

fn run(options: &Options) -> Result<(), String> {
    for threads in harness::THREAD_COUNTS {
        cases::recorder_cases(options, threads)?;
        cases::tokio_cases(options, threads)?;
    }
    Ok(())
}

fn main() {
    let outcome = Options::parse(std::env::args().skip(1)).and_then(|options| run(&options));
    if let Err(message) = outcome {
        eprintln!("dial9_peer: {message}");
        std::process::exit(1);
    }
}
