// One recording process's life and death, in a directory of its own, and the count of what its
// segments hold afterwards against what it did.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../integration/child_process.h"
#include "counters.h"

namespace dial9::testing {

void wait_us(long us);

class Life {
 public:
  Life();
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  std::string root() const { return path_ + "/runs"; }
  std::string log() const { return path_ + "/stderr"; }
  std::string counters_path() const { return path_ + "/counters"; }
  // The run directories in root().
  std::vector<std::string> runs() const;

  // Starts recording_child; see there.
  void start(const std::string& end, long delay_us, std::uint64_t seed);
  ChildProcess& child() { return *child_; }
  // True once its threads record.
  bool await_recording();

  // Every published event is in the run's segments once, or was counted as lost. A thread may have
  // died inside its last call: that event is there, or lost, or nowhere. Failures fail the test.
  void check(const std::string& run) const;

 private:
  std::string path_;
  Counters* counters_ = nullptr;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace dial9::testing
