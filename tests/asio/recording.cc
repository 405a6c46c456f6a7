// SPDX-License-Identifier: Apache-2.0
#include "recording.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "dial9/runtime.h"
#include "format/value.h"

namespace dial9::test {
namespace {

void append(const format::MaterializedTrace& decoded, Trace* trace) {
  EXPECT_FALSE(decoded.error.has_value());
  for (const format::OwnedEvent& owned : decoded.events) {
    const format::Schema& schema = decoded.schemas[owned.schema];
    Event event{std::string(schema.name), owned.timestamp_ns, trace->events.size(), {}};
    for (std::size_t i = 0; i < owned.values.size(); ++i) {
      event.fields[std::string(schema.fields[i].name)] = owned.values[i];
    }
    if (event.name == "SegmentMetadataEvent") {
      const auto& entries = event.fields["entries"].elements;
      for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
        trace->metadata[entries[i].text] = entries[i + 1].text;
      }
    }
    trace->events.push_back(std::move(event));
  }
}

}  // namespace

std::uint64_t Event::number(const std::string& field) const {
  const auto found = fields.find(field);
  return found == fields.end() || !found->second.is_present ? 0 : found->second.bits;
}

std::string Event::text(const std::string& field) const {
  const auto found = fields.find(field);
  return found == fields.end() ? "" : found->second.text;
}

bool Event::has(const std::string& field) const {
  const auto found = fields.find(field);
  return found != fields.end() && found->second.is_present;
}

std::vector<Event> Trace::named(const std::string& name) const {
  std::vector<Event> found;
  std::copy_if(events.begin(), events.end(), std::back_inserter(found),
               [&](const Event& event) { return event.name == name; });
  return found;
}

std::vector<Poll> Trace::polls() const {
  std::vector<Poll> polls;
  std::map<std::uint64_t, std::size_t> open;
  for (const Event& event : events) {
    const std::uint64_t worker = event.number("worker_id");
    if (event.name == "PollStartEvent") {
      EXPECT_EQ(open.count(worker), 0u) << "a second poll on worker " << worker;
      open[worker] = polls.size();
      polls.push_back(
          {worker, event.number("task_id"), event.timestamp_ns, 0, event.text("spawn_loc")});
    } else if (event.name == "PollEndEvent") {
      const auto at = open.find(worker);
      if (at == open.end()) {
        ADD_FAILURE() << "an end without a start on worker " << worker;
        continue;
      }
      polls[at->second].end_ns = event.timestamp_ns;
      open.erase(at);
    }
  }
  return polls;
}

std::vector<Poll> Trace::polls_of(std::uint64_t task) const {
  std::vector<Poll> found = polls();
  std::erase_if(found, [&](const Poll& poll) { return poll.task != task; });
  return found;
}

std::uint64_t Trace::task_named(const std::string& name) const {
  std::vector<std::uint64_t> found;
  for (const Event& event : named("TaskSpawnEvent")) {
    if (event.text("spawn_loc") == name) found.push_back(event.number("task_id"));
  }
  EXPECT_EQ(found.size(), 1u) << "tasks named " << name;
  return found.empty() ? 0 : found[0];
}

std::vector<Event> Trace::wakes_of(std::uint64_t task) const {
  std::vector<Event> found = named("WakeEventEvent");
  std::erase_if(found, [&](const Event& event) { return event.number("woken_task_id") != task; });
  return found;
}

Recording::Recording() {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{256} << 20);
  auto [recorder, status] = Recorder::start(options);
  EXPECT_TRUE(status.ok()) << status.message();
  recorder_ = std::move(recorder);
}

Recording::~Recording() = default;

Trace Recording::so_far() {
  Trace trace;
  for (const SegmentBytes& segment : recorder_.sealed_segments()) {
    append(format::materialize(segment.bytes), &trace);
  }
  std::sort(trace.events.begin(), trace.events.end(), [](const Event& a, const Event& b) {
    return a.timestamp_ns != b.timestamp_ns ? a.timestamp_ns < b.timestamp_ns : a.order < b.order;
  });
  return trace;
}

Trace Recording::finish() {
  EXPECT_TRUE(recorder_.rotate(std::chrono::seconds(20)));
  const Trace trace = so_far();
  for (const Event& loss : trace.named("RecorderLossEvent")) {
    EXPECT_EQ(loss.text("cause"), "recording_off");
  }
  recorder_.stop(std::chrono::seconds(20));
  return trace;
}

Trace record(const std::function<void()>& work) {
  Recording recording;
  work();
  const std::uint64_t end_ns = now_ns();
  Trace trace = recording.finish();
  // finish() waits, which is a park if this thread was a worker.
  std::erase_if(trace.events, [&](const Event& event) {
    return event.timestamp_ns > end_ns && event.name == "WorkerParkEvent";
  });
  return trace;
}

std::uint64_t now_ns() { return runtime::now_ns(); }

void spin_for_ns(std::uint64_t duration_ns) {
  for (const std::uint64_t start = now_ns(); now_ns() - start < duration_ns;) {
  }
}

}  // namespace dial9::test
