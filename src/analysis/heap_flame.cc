// See heap_flame.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/heap_flame.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "analysis/counts.h"
#include "analysis/human.h"

namespace dial9::analysis {
namespace {

std::uint32_t stack_of(const HeapGroup& group) { return static_cast<std::uint32_t>(group.key); }

bool is_of_identifier(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_operator_at(std::string_view name, std::size_t at) {
  constexpr std::string_view kWord = "operator";
  return name.substr(at).starts_with(kWord) && (at == 0 || !is_of_identifier(name[at - 1])) &&
         (at + kWord.size() == name.size() || !is_of_identifier(name[at + kWord.size()]));
}

// Behind the parentheses that begin at `at`; the name's end where they don't close.
std::size_t after_parentheses(std::string_view name, std::size_t at) {
  int depth = 0;
  for (; at < name.size(); ++at) {
    depth += name[at] == '(' ? 1 : name[at] == ')' ? -1 : 0;
    if (depth == 0) return at + 1;
  }
  return at;
}

// Without what templates' names begin with: the type that they return. From an operator on there
// is none. Within arguments of templates what stands in parentheses may compare, "(a>b)", and an
// operator's own name is no bracket.
std::string_view without_type(std::string_view name) {
  std::size_t begin = 0;
  int depth = 0;
  std::size_t i = 0;
  while (i < name.size() && (depth != 0 || name[i] != '(')) {
    if (is_operator_at(name, i)) {
      if (depth == 0) break;
      i = std::min(name.find_first_not_of("<>=-*", i + std::string_view("operator").size()),
                   name.size());
      continue;
    }
    if (name[i] == '(') {
      i = after_parentheses(name, i);
      continue;
    }
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (depth == 0 && name[i] == ' ') begin = i + 1;
    ++i;
  }
  return name.substr(begin);
}

// Of the C++ library, an allocator or Asio's: what everybody's allocation goes through.
bool is_plumbing(std::string_view name) {
  if (name.starts_with("operator new")) return true;
  const std::string_view bare = without_type(name);
  for (const std::string_view function : {"malloc", "calloc", "realloc", "aligned_alloc",
                                          "memalign", "posix_memalign", "valloc", "pvalloc"}) {
    if (name == function) return true;
  }
  for (const std::string_view prefix :
       {"std::", "__gnu_cxx::", "boost::asio::aligned_new",
        "boost::asio::detail::", "asio::aligned_new", "asio::detail::"}) {
    if (bare.starts_with(prefix)) return true;
  }
  return false;
}

const char* title_of(HeapOrder order) {
  switch (order) {
    case HeapOrder::kLive:
      return "Live heap";
    case HeapOrder::kGrowth:
      return "Growth of the live heap";
    case HeapOrder::kAllocated:
      break;
  }
  return "Allocated";
}

struct Weight {
  double bytes = 0;
  double count = 0;
  double of(bool counts) const { return counts ? count : bytes; }
};

// Of a group, or of a part of one.
template <class Figures>
Weight weight_of(const Figures& figures, HeapOrder order) {
  switch (order) {
    case HeapOrder::kLive:
      return {figures.live.bytes, figures.live.count};
    case HeapOrder::kGrowth:
      return {figures.live.bytes - figures.live_before.bytes,
              figures.live.count - figures.live_before.count};
    case HeapOrder::kAllocated:
      break;
  }
  return {figures.allocated.bytes, figures.allocated.count};
}

// Cuts a whole into rounded parts that sum to the rounded whole.
class Shares {
 public:
  Shares(double whole, double sum) : whole_(std::max(whole, 0.0)), sum_(sum) {}
  std::uint64_t next(double part) {
    passed_ += std::max(part, 0.0);
    const double share = passed_ < sum_ ? passed_ / sum_ : 1;
    const std::uint64_t until = count_of(whole_ * share + 0.5);
    return until - std::exchange(told_, std::max(told_, until));
  }

 private:
  double whole_;
  double sum_;  // of the parts that are more than nothing
  double passed_ = 0;
  std::uint64_t told_ = 0;
};

// The weight of a site, by how its samples' stacks were found. Where it is what grew, parts that
// shrank are taken off those that grew.
void use_site(const HeapGroup& group, HeapOrder order, bool counts, const UseStack& use) {
  Weight sum;
  for (const HeapPart& part : group.parts) {
    const Weight weight = weight_of(part, order);
    sum.bytes += std::max(weight.bytes, 0.0);
    sum.count += std::max(weight.count, 0.0);
  }
  const Weight whole = weight_of(group, order);
  Shares weights(whole.of(counts), sum.of(counts));
  Shares numbers(whole.count, sum.count);
  for (const HeapPart& part : group.parts) {
    const Weight weight = weight_of(part, order);
    if (weight.bytes <= 0 && weight.count <= 0) {
      continue;
    }
    use({.of = StackOf::kAllocation,
         .leaf = Leaf::kReturn,
         .is_truncated = part.is_truncated,
         .unwound = part.unwound,
         .stack = stack_of(group),
         .at_ns = group.first_ns,
         .weight = weights.next(weight.of(counts)),
         .count = numbers.next(weight.count)});
  }
}

}  // namespace

FlameHeading take_heap_stacks(const HeapReport& report, HeapOrder order, bool counts,
                              const UseStack& use) {
  FlameHeading heading{.title = title_of(order), .noun = "allocation", .notes = report.notes};
  if (const std::string_view lack = heap_lack(report, order); !lack.empty()) {
    heading.notes.emplace(heading.notes.begin(), lack);
    heading.is_unknown = true;
    return heading;
  }
  heading.is_uncertain =
      report.has_lost_samples || (order != HeapOrder::kAllocated && report.is_live_uncertain);
  double shrunk = 0;
  for (const HeapGroup& group : report.groups) {
    const double weight = weight_of(group, order).of(counts);
    if (weight > 0) {
      use_site(group, order, counts, use);
    }
    shrunk -= std::min(weight, 0.0);
  }
  if (shrunk > 0) {
    const std::uint64_t whole = count_of(shrunk + 0.5);
    heading.notes.push_back(
        "sites that shrank aren't shown: " + (counts ? human_count(whole) : human_bytes(whole)) +
        " less than before");
  }
  return heading;
}

void add_heap_unwound(const HeapGroup& group, HeapOrder order, UnwoundSums& sums) {
  if (weight_of(group, order).bytes > 0) {
    use_site(group, order, false, [&](const TakenStack& taken) {
      sums.add(taken.unwound, taken.is_truncated, taken.weight);
    });
  }
}

HeapFlame heap_flame(const Trace& trace, const HeapReport& report, HeapOrder order, bool counts,
                     FrameNamer* namer, bool is_inverted, FrameBy by) {
  HeapFlame flame{FlameTree(counts ? FlameUnit::kCount : FlameUnit::kBytes, is_inverted), {}};
  StackNames names(trace, namer, flame.tree, by);
  flame.heading = take_heap_stacks(report, order, counts, [&](const TakenStack& taken) {
    flame.tree.add(names.frames(taken.stack, taken.at_ns, taken.leaf), taken.weight, taken.count,
                   marks_of(taken));
  });
  add_unwound_notes(flame.tree, flame.heading);
  names.add_notes(flame.heading);
  flame.heading.by_line = by == FrameBy::kLine;
  return flame;
}

std::vector<std::string> heap_site_names(const Trace& trace, const HeapReport& report,
                                         FrameNamer* namer) {
  constexpr std::size_t kShown = 3;
  FlameTree tree(FlameUnit::kBytes);
  StackNames names(trace, namer, tree);
  std::vector<std::string> sites;
  for (const HeapGroup& group : report.groups) {
    std::string text;
    const auto frames = names.frames(stack_of(group), group.first_ns, Leaf::kReturn);
    std::size_t first = 0;
    while (first < frames.size() && is_plumbing(tree.name(frames[first]))) ++first;
    if (first == frames.size()) first = 0;  // that is all there is
    for (std::size_t i = first; i < frames.size() && i < first + kShown; ++i) {
      text += (i != first ? " < " : first != 0 ? "... < " : "") + std::string(tree.name(frames[i]));
    }
    sites.push_back(text.empty() ? std::string(kNoStackName) : text);
  }
  return sites;
}

}  // namespace dial9::analysis
