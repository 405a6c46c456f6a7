// SPDX-License-Identifier: Apache-2.0
#include "analysis/shed.h"

#include <algorithm>

#include "analysis/counts.h"
#include "analysis/human.h"

namespace dial9::analysis {

ShedWindows::ShedWindows(const Trace& trace) {
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    Class& shed_class = classes_[c];
    const ShedRecord* last = nullptr;
    for (const ShedRecord& record : trace.shed) {
      if (trace.names.text(record.kind) != kShedKinds[c]) {
        continue;
      }
      shed_class.most = std::max(shed_class.most, record.keep_one_in);
      shed_class.shed = sum_of(shed_class.shed, record.shed);
      // Begins where the rate was told; what was counted under it comes with the next record.
      if (record.since_ns < record.at_ns && (last == nullptr || last->at_ns <= record.since_ns)) {
        const double weight = record.kept == 0 ? (last == nullptr ? 1 : last->keep_one_in)
                                               : 1 + static_cast<double>(record.shed) /
                                                         static_cast<double>(record.kept);
        shed_class.windows.push_back({record.since_ns, record.at_ns, weight});
      }
      last = &record;
    }
    if (last != nullptr && last->keep_one_in > 1) {
      shed_class.windows.push_back({last->at_ns, ~std::uint64_t{0}, last->keep_one_in});
      shed_class.is_open = true;
    }
    is_empty_ = is_empty_ && shed_class.windows.empty();
  }
}

double ShedWindows::weight(ShedKind kind, std::uint64_t at_ns) const {
  const std::vector<Window>& windows = of(kind).windows;
  const auto after =
      std::upper_bound(windows.begin(), windows.end(), at_ns,
                       [](std::uint64_t at, const Window& window) { return at < window.begin_ns; });
  if (after == windows.begin()) {
    return 1;
  }
  const Window& window = *std::prev(after);
  return at_ns < window.end_ns ? window.weight : 1;
}

bool ShedWindows::is_thin(ShedKind kind, std::uint64_t from_ns, std::uint64_t to_ns) const {
  const std::vector<Window>& windows = of(kind).windows;
  auto window = std::partition_point(windows.begin(), windows.end(),
                                     [&](const Window& w) { return w.end_ns <= from_ns; });
  for (; window != windows.end() && window->begin_ns <= to_ns; ++window) {
    if (window->weight > 1) {
      return true;
    }
  }
  return false;
}

bool ShedWindows::is_whole_for_task(ShedKind kind, std::uint64_t from_ns,
                                    std::uint64_t to_ns) const {
  const std::vector<Window>& windows = of(kind).windows;
  const auto window = std::partition_point(windows.begin(), windows.end(),
                                           [&](const Window& w) { return w.end_ns <= from_ns; });
  const bool is_within =
      window != windows.end() && window->begin_ns <= from_ns && to_ns < window->end_ns;
  return is_within || !is_thin(kind, from_ns, to_ns);
}

std::vector<LossRecord> ShedWindows::with_losses(const Trace& trace) const {
  std::vector<LossRecord> out = trace.loss;
  for (const ShedKind kind : {ShedKind::kWakes, ShedKind::kParks, ShedKind::kPolls}) {
    for (const Window& window : of(kind).windows) {
      if (window.weight > 1) {
        out.push_back({window.begin_ns, kNoName, 1, window.begin_ns, window.end_ns});
      }
    }
  }
  return out;
}

namespace {

// Rates are at most a billion, see shed_rate().
std::string one_decimal(double rate) {
  const auto tenths = static_cast<std::uint64_t>(rate * 10 + 0.5);
  return human_count(tenths / 10) + "." + std::to_string(tenths % 10);
}

}  // namespace

std::vector<std::string> ShedWindows::lines() const {
  std::vector<std::string> out;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const Class& shed_class = classes_[c];
    if (shed_class.shed == 0 && !shed_class.is_open) {
      continue;
    }
    out.push_back((shed_class.is_open ? "at least " : "") + human_count(shed_class.shed) + " " +
                  std::string(kShedKinds[c]) + " (at times only one in " +
                  one_decimal(shed_class.most) + " was kept)");
  }
  return out;
}

}  // namespace dial9::analysis
