// Each worker has a clock of its own; the one that is furthest behind writes the next batch, as a
// stream, so that the streams of a file overlap in time as those of threads do.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/synthetic_trace.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/testing/trace_builder.h"

namespace dial9::analysis::testing {
namespace {

constexpr std::uint64_t kStartNs = 1'000'000'000'000;
constexpr std::uint64_t kRealtimeNs = 1'790'000'000'000'000'000;
constexpr std::uint64_t kPollsAStream = 512;

// splitmix64: the same everywhere, unlike <random>'s distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // [low, high), skewed to its lower end.
  std::uint64_t skewed(std::uint64_t low, std::uint64_t high) {
    const double u = static_cast<double>(next() >> 11) / 9007199254740992.0;
    return low + static_cast<std::uint64_t>(u * u * u * static_cast<double>(high - low));
  }

 private:
  std::uint64_t state_;
};

class Writer {
 public:
  explicit Writer(const SyntheticOptions& options)
      : options_(options), random_(options.seed), clocks_(options.workers, kStartNs) {}

  void head() {
    builder_.clock_sync(kStartNs, kRealtimeNs);
    builder_.metadata(kStartNs, "service", "synthetic");
    std::string workers;
    for (std::uint32_t worker = 0; worker < options_.workers; ++worker) {
      workers += (worker == 0 ? "" : ",") + std::to_string(worker);
    }
    builder_.metadata(kStartNs, "runtime.main", workers);
    for (std::uint32_t task = 1; task <= options_.tasks; ++task) {
      builder_.spawn(kStartNs, task, place(task));
    }
    counts_.events += 3 + options_.tasks;
  }

  // One stream of one worker.
  void batch(std::uint64_t first_poll, std::uint64_t polls) {
    const auto behind = std::min_element(clocks_.begin(), clocks_.end());
    const auto worker = static_cast<std::uint32_t>(behind - clocks_.begin());
    std::uint64_t& now_ns = *behind;
    begin_spans();
    for (std::uint64_t i = 0; i < polls; ++i) {
      const std::uint64_t task = 1 + random_.next() % options_.tasks;
      const std::uint64_t ready_ns = now_ns;
      now_ns += random_.skewed(200, 20'000);
      builder_.wake(ready_ns, task);
      const bool is_slow =
          options_.slow_every != 0 && (first_poll + i + 1) % options_.slow_every == 0;
      const std::uint64_t length_ns = is_slow ? 20'000'000 : random_.skewed(500, 200'000);
      builder_.poll_start(now_ns, worker, task, place(task));
      const bool has_span = i % 8 == 0;
      if (has_span) {
        span_enter(now_ns + 100, worker, first_poll + i);
        span_exit(now_ns + length_ns - 100, worker, first_poll + i, length_ns - 200);
      }
      now_ns += length_ns;
      builder_.poll_end(now_ns, worker);
      counts_.events += has_span ? 5 : 3;
      if (i % 4 == 3) {
        builder_.park(now_ns + 100, worker, 100 + worker);
        now_ns += random_.skewed(1'000, 500'000);
        builder_.unpark(now_ns, worker, i % 40 == 3 ? 500 : TraceBuilder::kNoWait, 100 + worker);
        counts_.events += 2;
      }
    }
    builder_.metrics(now_ns, "main", static_cast<std::uint32_t>(random_.skewed(0, 40)),
                     options_.tasks);
    ++counts_.events;
  }

  std::vector<std::uint8_t> take() {
    std::vector<std::uint8_t> bytes = builder_.take();
    counts_.bytes += bytes.size();
    return bytes;
  }
  const SyntheticCounts& counts() const { return counts_; }

 private:
  static constexpr std::uint16_t kEnter = 100;
  static constexpr std::uint16_t kExit = 101;

  static std::string place(std::uint64_t task) {
    return "synthetic.cc:" + std::to_string(10 + task % 7);
  }

  void begin_spans() {
    using format::FieldType;
    builder_.encoder().schema(kEnter, "SpanEnter:synthetic.cc:1:1", true,
                              {{"worker_id", FieldType::kVarint},
                               {"span_id", FieldType::kVarint},
                               {"parent_span_id", FieldType::kVarint, true},
                               {"span_name", FieldType::kPooledString},
                               {"order", FieldType::kVarint}});
    builder_.encoder().schema(kExit, "SpanExit:synthetic.cc:1:1", true,
                              {{"worker_id", FieldType::kVarint},
                               {"span_id", FieldType::kVarint},
                               {"active_ns", FieldType::kVarint},
                               {"idle_ns", FieldType::kVarint},
                               {"poll_count", FieldType::kVarint},
                               {"completed", FieldType::kBool}});
  }
  static std::uint64_t span_id(std::uint64_t number) { return (std::uint64_t{1} << 63) | number; }
  void span_enter(std::uint64_t at_ns, std::uint32_t worker, std::uint64_t number) {
    format::Encoder& out = builder_.encoder();
    out.begin(kEnter, at_ns);
    out.varint(worker);
    out.varint(span_id(number));
    out.absent();
    out.pooled_string("request");
    out.varint(number);
  }
  void span_exit(std::uint64_t at_ns, std::uint32_t worker, std::uint64_t number,
                 std::uint64_t active_ns) {
    format::Encoder& out = builder_.encoder();
    out.begin(kExit, at_ns);
    out.varint(worker);
    out.varint(span_id(number));
    out.varint(active_ns);
    out.varint(0);
    out.varint(1);
    out.boolean(true);
  }

  const SyntheticOptions& options_;
  Random random_;
  std::vector<std::uint64_t> clocks_;
  TraceBuilder builder_;
  SyntheticCounts counts_;
};

}  // namespace

SyntheticCounts write_synthetic(const SyntheticOptions& options,
                                const std::function<bool(std::span<const std::uint8_t>)>& sink) {
  Writer writer(options);
  writer.head();
  bool is_wanted = sink(writer.take());
  for (std::uint64_t done = 0; done < options.polls && is_wanted; done += kPollsAStream) {
    writer.batch(done, std::min(kPollsAStream, options.polls - done));
    is_wanted = sink(writer.take());
  }
  return writer.counts();
}

}  // namespace dial9::analysis::testing
