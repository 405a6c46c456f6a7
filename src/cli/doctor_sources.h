// `dial9 doctor`'s second trial: the sources that the environment turns on (CPU and off-CPU
// samples, platform stalls, resources, accept queues), each made to produce something by a thread
// that runs and sleeps by turns. Strongest property: a source that makes nothing is named with the
// reason that it gives itself. Spec: docs/guide/on_call.md, "doctor".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/doctor_checks.h"
#include "session/environment.h"

namespace dial9::cli {

struct SourceFacts {
  std::string name;
  std::string variable;       // that turns it on and off
  bool is_on = false;         // asked for
  std::string error;          // why it wasn't tried, or was refused
  std::uint64_t events = 0;   // that it recorded
  bool must_produce = false;  // nothing at all means that something is wrong
  std::string reason;         // its own: why nothing, or less than there should be
};
Check check_source(const SourceFacts& facts);

// Starts and stops the recorder of this process, in `trial_directory` (empty: memory): call it
// while there is none. Takes about 0.3 s, and 3 s where a source makes nothing.
std::vector<SourceFacts> try_sources(const internal::EnvironmentPlan& plan,
                                     const std::string& trial_directory);

}  // namespace dial9::cli
