//! What the original is asked to record, each as a user of its public API would write it.
//! Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
use std::hint::black_box;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use dial9::core::{clock_monotonic_ns, Encodable, ThreadLocalEncoder};
use dial9::format::TraceEvent;
use dial9::{Dial9Handle, Dial9HandleTokioExt, DiskBuffer, Recorder, TokioAttachOptions};
use dial9_tokio_telemetry::telemetry::{PollEndEvent, PollStartEvent, TaskId, WorkerId};

use crate::harness::{measure, report, Options};
use crate::readback::count_events;

/// More than a run records: nothing is evicted before it is counted.
const BUDGET_BYTES: u64 = 512 << 20;
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(TraceEvent)]
struct OrderPlaced {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    order_id: u64,
    status: u32,
    latency_us: u64,
}

/// A span is one event at its end in the original's model, with the duration as an annotated field.
#[derive(TraceEvent)]
struct CheckoutSpan {
    #[traceevent(timestamp)]
    end_ns: u64,
    #[traceevent(role = "span.duration", unit = "ns")]
    duration_ns: u64,
    order_id: u64,
    amount: u64,
}

/// A poll's start as the original's own hooks build it: the place is interned while it is encoded.
struct PollStart {
    timestamp_ns: u64,
    place: &'static Location<'static>,
}

impl Encodable for PollStart {
    fn encode(&self, encoder: &mut ThreadLocalEncoder<'_>) {
        let spawn_loc = encoder.intern_location(self.place);
        encoder.encode(&PollStartEvent {
            timestamp_ns: self.timestamp_ns,
            worker_id: WorkerId::from(0usize),
            local_queue: 1,
            task_id: TaskId::from_u32(7),
            spawn_loc,
        });
    }
}

fn record_order(handle: &Dial9Handle, i: u64) {
    handle.record_event_with(|| OrderPlaced {
        timestamp_ns: clock_monotonic_ns(),
        order_id: i,
        status: 200,
        latency_us: i * 3,
    });
}

fn record_span(handle: &Dial9Handle, i: u64) {
    let start_ns = clock_monotonic_ns();
    black_box(i); // the work inside
    handle.record_event_with(|| {
        let end_ns = clock_monotonic_ns();
        CheckoutSpan {
            end_ns,
            duration_ns: end_ns - start_ns,
            order_id: i,
            amount: i * 3,
        }
    });
}

fn record_poll(handle: &Dial9Handle, place: &'static Location<'static>) {
    handle.record_event_with(|| PollStart {
        timestamp_ns: clock_monotonic_ns(),
        place,
    });
    handle.record_event_with(|| PollEndEvent {
        timestamp_ns: clock_monotonic_ns(),
        worker_id: WorkerId::from(0usize),
    });
}

/// Records into a fresh folder of its own; removed once it is counted.
struct Recording {
    recorder: Recorder,
    folder: PathBuf,
}

impl Recording {
    fn start(directory: &Path) -> Result<Self, String> {
        let folder = directory.join("original");
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let writer = DiskBuffer::builder()
            .base_path(&folder)
            .max_total_size(BUDGET_BYTES)
            .build()
            .map_err(|e| e.to_string())?;
        let recorder = dial9::recorder(writer).build();
        Ok(Recording { recorder, folder })
    }

    /// Stops and says how many of the `expected` events of each name are missing.
    fn finish<const N: usize>(self, names: [&str; N], expected: u64) -> Result<[i64; N], String> {
        self.recorder.graceful_shutdown(STOP_TIMEOUT);
        let counts = count_events(&self.folder)?;
        std::fs::remove_dir_all(&self.folder).map_err(|e| e.to_string())?;
        Ok(names.map(|name| expected as i64 - counts.get(name).copied().unwrap_or(0) as i64))
    }
}

/// A burst of `op(handle, i)` for `measure`.
fn bursts<'a>(
    handle: &'a Dial9Handle,
    op: impl Fn(&Dial9Handle, u64) + Copy + 'a,
) -> impl FnMut(u32) + 'a {
    move |burst_ops| {
        for i in 0..u64::from(burst_ops) {
            op(handle, black_box(i));
        }
    }
}

/// The recorder alone, without a runtime.
pub fn recorder_cases(options: &Options, threads: u32) -> Result<(), String> {
    let recording = Recording::start(&options.directory)?;
    let handle = recording.recorder.handle().clone();
    let place = Location::caller();
    let event = measure(options, threads, || bursts(&handle, record_order));
    let span = measure(options, threads, || bursts(&handle, record_span));
    let poll = measure(options, threads, || {
        bursts(&handle, |handle, _| record_poll(handle, place))
    });
    handle.disable();
    let event_off = measure(options, threads, || bursts(&handle, record_order));
    handle.enable();
    let [orders, spans, starts, ends] = recording.finish(
        ["OrderPlaced", "CheckoutSpan", "PollStartEvent", "PollEndEvent"],
        options.operations(threads),
    )?;
    report("event_on", threads, &event, Some(orders));
    report("event_off", threads, &event_off, None);
    report("span", threads, &span, Some(spans));
    report("poll_direct", threads, &poll, Some(starts + ends));
    Ok(())
}

/// A burst is one task that is polled `burst_ops` times and wakes itself each time.
fn task_bursts(runtime: tokio::runtime::Runtime) -> impl FnMut(u32) {
    move |burst_ops| {
        let mut left = burst_ops;
        let task = std::future::poll_fn(move |context| {
            left -= 1;
            if left == 0 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        runtime
            .block_on(async { tokio::spawn(task).await })
            .expect("the task panicked");
    }
}

/// Polls of a current-thread tokio runtime (one a thread): bare, with the original's hooks on, off.
pub fn tokio_cases(options: &Options, threads: u32) -> Result<(), String> {
    let builder = tokio::runtime::Builder::new_current_thread;
    let bare = measure(options, threads, || {
        task_bursts(builder().build().expect("a tokio runtime"))
    });
    let recording = Recording::start(&options.directory)?;
    let handle = recording.recorder.handle().clone();
    let attached = || {
        let options = TokioAttachOptions::builder().build();
        handle
            .attach_tokio_runtime(builder(), options)
            .expect("a tokio runtime with the original's hooks")
    };
    let on = measure(options, threads, || task_bursts(attached()));
    handle.disable();
    let off = measure(options, threads, || task_bursts(attached()));
    handle.enable();
    let [starts, ends] = recording.finish(
        ["PollStartEvent", "PollEndEvent"],
        options.operations(threads),
    )?;
    report("tokio_bare", threads, &bare, None);
    report("tokio_off", threads, &off, None);
    report("tokio_on", threads, &on, Some(starts + ends));
    Ok(())
}
