// The flame tree of a run's CPU samples, and the moments behind one of its frames.
// Strongest property: one namer serves all requests, one at a time; a reply has a bounded number of
// frames, and says what it leaves out. Spec: docs/spec/http_api.md, "Flame tree".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/stack_names.h"
#include "server/router.h"
#include "server/run.h"

namespace dial9::server {

// A namer of anybody's, for threads.
class SharedNamer final : public analysis::FrameNamer {
 public:
  // `inner` outlives this; null: nothing is named.
  explicit SharedNamer(analysis::FrameNamer* inner) : inner_(inner) {}
  std::vector<symbolize::Frame> frames(std::string_view path, std::string_view build_id,
                                       std::uint64_t address, bool is_return) override;
  std::vector<symbolize::Frame> kernel_frames(std::string_view boot_id, std::uint64_t address,
                                              bool is_return) override;

 private:
  std::mutex mutex_;
  analysis::FrameNamer* const inner_;  // its calls are guarded by mutex_
};

// The parameters of both.
inline constexpr std::string_view kFlameParameters =
    "from to worker thread task span label inverted nodes";

Response flame(const Call& call, const Run& run, SharedNamer& namer);
// Names those frames of a sample's details that the trace itself doesn't.
void name_frames(const Run& run, SharedNamer& namer, std::uint32_t stack, std::uint64_t at_ns,
                 nlohmann::json& frames);
// And `node`, `limit`.
Response flame_moments(const Call& call, const Run& run, SharedNamer& namer);

}  // namespace dial9::server
