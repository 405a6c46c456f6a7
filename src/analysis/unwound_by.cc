// See unwound_by.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/unwound_by.h"

#include <utility>

#include "analysis/counts.h"
#include "analysis/flame.h"

namespace dial9::analysis {
namespace {

// In the order in which they are told.
struct Kind {
  UnwoundBy by;
  std::string_view name;
  std::string_view text;
};
constexpr std::array<Kind, kUnwoundKinds> kKinds{{
    {UnwoundBy::kTables, "tables", "by unwind tables"},
    {UnwoundBy::kFramePointers, "frame_pointers", "by frame pointers"},
    {UnwoundBy::kMixed, "mixed", "partly by frame pointers"},
    {UnwoundBy::kGuessed, "guessed", "from a frame pointer found by trial"},
    {UnwoundBy::kOneFrame, "one_frame", "of one frame"},
    {UnwoundBy::kNoStack, "no_stack", "without a stack"},
    {UnwoundBy::kUnknown, "unknown", "not recorded how"},
}};

// A tenth of it and more.
bool is_large(std::uint64_t part, std::uint64_t whole) {
  constexpr std::uint64_t kLarge = 10;
  return part != 0 && part >= whole / kLarge;
}

}  // namespace

UnwoundBy unwound_by(std::string_view text, bool is_guessed) {
  constexpr std::pair<std::string_view, UnwoundBy> kTexts[] = {
      {"tables", UnwoundBy::kTables},
      {"frame_pointers", UnwoundBy::kFramePointers},
      {"mixed", UnwoundBy::kMixed},
      {"none", UnwoundBy::kOneFrame}};
  for (const auto& [known, by] : kTexts) {
    if (known == text) {
      return is_guessed ? UnwoundBy::kGuessed : by;
    }
  }
  return UnwoundBy::kUnknown;
}

std::string_view unwound_name(UnwoundBy by) {
  for (const Kind& kind : kKinds) {
    if (kind.by == by) {
      return kind.name;
    }
  }
  return {};
}

std::string unwound_fact(UnwoundBy by, bool is_truncated) {
  std::string out;
  for (const Kind& kind : kKinds) {
    if (kind.by == by && by != UnwoundBy::kUnknown && by != UnwoundBy::kNoStack) {
      out = kind.text;
    }
  }
  if (is_truncated) {
    out += out.empty() ? "its outer frames are missing" : "; its outer frames are missing";
  }
  return out;
}

std::uint64_t UnwoundSums::total() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t one : weight) {
    sum = sum_of(sum, one);
  }
  return sum;
}

void UnwoundSums::add(UnwoundBy by, bool is_truncated, std::uint64_t more) {
  std::uint64_t& sum = weight[static_cast<std::size_t>(by)];
  sum = sum_of(sum, more);
  truncated = sum_of(truncated, is_truncated ? more : 0);
}

std::string unwound_text(const UnwoundSums& sums, std::uint64_t whole) {
  std::uint64_t known = 0;
  std::string out;
  for (const Kind& kind : kKinds) {
    const std::uint64_t part = sums.of(kind.by);
    if (part == 0) {
      continue;
    }
    out += (out.empty() ? "stacks: " : ", ") + percent_of(part, whole) + " ";
    out += kind.text;
    known += kind.by != UnwoundBy::kUnknown && kind.by != UnwoundBy::kNoStack ? 1 : 0;
  }
  if (known == 0) {
    return sums.of(UnwoundBy::kUnknown) == 0 ? "" : "how the stacks were found isn't recorded";
  }
  return out;
}

std::vector<std::string> unwound_cures(const UnwoundSums& sums, std::uint64_t whole,
                                       std::string_view end) {
  std::vector<std::string> cures;
  const std::uint64_t by_pointers =
      sum_of(sums.of(UnwoundBy::kFramePointers), sums.of(UnwoundBy::kMixed));
  if (is_large(by_pointers, whole)) {
    cures.push_back(percent_of(by_pointers, whole) +
                    " lies in stacks that were followed by frame pointers, through code without "
                    "unwind tables: callers may be missing; build that code with "
                    "-fasynchronous-unwind-tables, or with -fno-omit-frame-pointer");
  }
  if (is_large(sums.truncated, whole)) {
    cures.push_back(percent_of(sums.truncated, whole) + " lies in stacks that were cut short" +
                    (end.empty() ? "" : ", mostly " + std::string(end)) +
                    ": code there has neither unwind tables nor frame pointers "
                    "(-fasynchronous-unwind-tables, -fno-omit-frame-pointer), or the stack is "
                    "deeper than is recorded (about 200 frames; of perf's samples 8 KiB)");
  }
  return cures;
}

std::string unwound_json(const UnwoundSums& sums) {
  std::string out;
  for (const Kind& kind : kKinds) {
    out += (out.empty() ? "{\"" : ", \"") + std::string(unwound_name(kind.by)) +
           "\": " + std::to_string(sums.of(kind.by));
  }
  return out + "}";
}

}  // namespace dial9::analysis
