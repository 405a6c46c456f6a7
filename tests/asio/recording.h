// Records in memory while a test runs, and reads the trace back with the format's decoder: what the
// tests look at is what a reader of the file would see.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dial9/recorder.h"
#include "format/materialize.h"

namespace dial9::test {

struct Event {
  std::string name;
  std::uint64_t timestamp_ns = 0;
  std::size_t order = 0;  // in the file
  std::map<std::string, format::OwnedValue> fields;

  // 0, "" and false where the event has no such field or it is absent.
  std::uint64_t number(const std::string& field) const;
  std::string text(const std::string& field) const;
  bool has(const std::string& field) const;
};

// A poll as a reader pairs it: start and the next end of the same worker.
struct Poll {
  std::uint64_t worker = 0;
  std::uint64_t task = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;  // 0: never ended
  std::string spawn_loc;
};

class Trace {
 public:
  // In the order of time; events of one stamp in the order of their stream.
  std::vector<Event> events;
  std::map<std::string, std::string> metadata;

  std::vector<Event> named(const std::string& name) const;
  std::vector<Poll> polls() const;
  std::vector<Poll> polls_of(std::uint64_t task) const;
  // The id of the only task spawned under this name; fails the test otherwise.
  std::uint64_t task_named(const std::string& name) const;
  // The wakes of the task, oldest first.
  std::vector<Event> wakes_of(std::uint64_t task) const;
};

class Recording {
 public:
  Recording();  // fails the test if it can't start
  ~Recording();
  Recorder& recorder() { return recorder_; }
  // What sealed segments hold by now.
  Trace so_far();
  // Stops, and reads everything back. Fails the test if anything was lost.
  Trace finish();

 private:
  Recorder recorder_;
};

// Records while `work` runs; without the parks after it.
Trace record(const std::function<void()>& work);

std::uint64_t now_ns();
// Keeps the CPU busy until the clock has moved this far.
void spin_for_ns(std::uint64_t duration_ns);

}  // namespace dial9::test
