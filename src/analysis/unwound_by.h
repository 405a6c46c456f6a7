// How the frames of stacks were found, as samples say, and sums of weights by it. Strongest
// property: each weight is in one sum, and what isn't recorded is in a sum of its own.
// Spec: docs/spec/flame.md, "How stacks were found".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dial9::analysis {

enum class UnwoundBy : std::uint8_t {
  kUnknown,        // not recorded
  kTables,         // every step by unwind tables
  kFramePointers,  // every step by frame pointers
  kMixed,          // some steps by each
  kGuessed,        // from a frame pointer that was found by trial: it fits, but isn't proven
  kOneFrame,       // nothing had to be found
  kNoStack,
};
inline constexpr std::size_t kUnwoundKinds = 7;

// Of a sample's `unwound_by`, and `guessed` where it has one.
UnwoundBy unwound_by(std::string_view text, bool is_guessed = false);
std::string_view unwound_name(UnwoundBy by);  // "tables", ... as JSON has it

// Of one stack: "by unwind tables; its outer frames are missing"; empty: nothing is known.
std::string unwound_fact(UnwoundBy by, bool is_truncated);

struct UnwoundSums {
  std::array<std::uint64_t, kUnwoundKinds> weight{};
  std::uint64_t truncated = 0;  // of them: the outermost frames are missing

  std::uint64_t of(UnwoundBy by) const { return weight[static_cast<std::size_t>(by)]; }
  std::uint64_t total() const;
  void add(UnwoundBy by, bool is_truncated, std::uint64_t more);
};

// "stacks: 97.0 % by unwind tables, 2.0 % by frame pointers, 1.0 % not recorded how"; empty: there
// are none. `whole`: what percents are of.
std::string unwound_text(const UnwoundSums& sums, std::uint64_t whole);
// Where a large share may lack callers: why, and the cure. `end`: where most that are truncated
// end, as "in libfoo.so"; empty: not known.
std::vector<std::string> unwound_cures(const UnwoundSums& sums, std::uint64_t whole,
                                       std::string_view end = {});
// {"tables": 5, ...}: a member a kind.
std::string unwound_json(const UnwoundSums& sums);

}  // namespace dial9::analysis
