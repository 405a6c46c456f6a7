// A run's flame trees: time on and off the CPU, locks, heap; around one function, against another
// range or run, and the moments behind a frame.
// Strongest property: one namer serves all requests, one at a time; a reply has a bounded number of
// frames, and says what it leaves out. Spec: docs/spec/http_api.md, "Flame tree".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stack_names.h"
#include "server/json_fwd.h"
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
  void expect(std::string_view path, std::string_view build_id,
              std::span<const std::uint64_t> addresses) override;
  std::vector<symbolize::Frame> kernel_frames(std::string_view boot_id, std::uint64_t address,
                                              bool is_return) override;
  std::vector<std::string> notes(std::string_view path, std::string_view build_id,
                                 bool with_lines) override;
  std::uint64_t shortages() const override;

 private:
  mutable std::mutex mutex_;
  analysis::FrameNamer* const inner_;  // its calls are guarded by mutex_
};

// The namer of one request: knows which files it asked about, and so whose notes belong to it. Not
// thread-safe.
class RequestNamer final : public analysis::FrameNamer {
 public:
  static constexpr std::size_t kMostNotes = 50;

  explicit RequestNamer(SharedNamer& inner) : inner_(inner) {}
  std::vector<symbolize::Frame> frames(std::string_view path, std::string_view build_id,
                                       std::uint64_t address, bool is_return) override;
  void expect(std::string_view path, std::string_view build_id,
              std::span<const std::uint64_t> addresses) override;
  std::vector<symbolize::Frame> kernel_frames(std::string_view boot_id, std::uint64_t address,
                                              bool is_return) override;
  // Adds the notes on what was asked about, each once; of more than kMostNotes, how many.
  void add_notes(analysis::FlameHeading& heading) const;

 private:
  void asked(std::string_view path, std::string_view build_id);

  SharedNamer& inner_;
  using Asked = std::pair<std::string, std::string>;  // path, build id
  std::set<Asked> asked_;
  Asked last_asked_;
};

// Parameters: kFlameParameters, `inverted`, `order`.
Response flame(const Call& call, const Run& run, SharedNamer& namer);
// And `node`, `limit`.
Response flame_moments(const Call& call, const Run& run, SharedNamer& namer);
// Parameters: kFlameParameters, `function`, `module`.
Response flame_butterfly(const Call& call, const Run& run, SharedNamer& namer);
// What changed since `before`, which may be the same run. Parameters: kFlameParameters, `inverted`,
// `before_from`, `before_to`.
Response flame_diff(const Call& call, const Run& run, const Run& before, SharedNamer& namer);

// Names those frames of a stack's details that the trace itself doesn't. `is_return`: the first is
// where a call returns to.
void name_frames(const Run& run, SharedNamer& namer, std::uint32_t stack, std::uint64_t at_ns,
                 bool is_return, json& frames);

}  // namespace dial9::server
