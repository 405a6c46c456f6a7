// The faults that the checkout service can switch on: their names, what each does, and what a
// diagnosis of a recording should say. Pure data and parsing; faults.h does them.
// One table row is the whole description of a fault, so that --list-faults can't fall behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace checkout {

enum class Fault : std::uint8_t {
  kLongHandler,
  kBlockingRead,
  kHotMutex,
  kConnectStorm,
  kOneStrand,
  kOversubscribed,
  kHopping,
  kGrowingQueue,
  kTaskLeak,
};
inline constexpr std::size_t kFaultCount = 9;

struct FaultInfo {
  Fault fault;
  std::string_view name;         // what --fault takes
  std::string_view finding;      // the kind that `dial9 diagnose` should report
  std::string_view description;  // one paragraph: what it does, and what a diagnosis should show
};

// All faults, in the order of the enumeration. Static storage.
std::span<const FaultInfo> all_faults();

// A set of faults; empty by default.
class FaultSet {
 public:
  void add(Fault fault) { bits_ |= bit(fault); }
  bool has(Fault fault) const { return (bits_ & bit(fault)) != 0; }
  bool empty() const { return bits_ == 0; }

 private:
  static std::uint32_t bit(Fault fault) { return 1U << static_cast<unsigned>(fault); }
  std::uint32_t bits_ = 0;
};

// Parses "NAME[,NAME...]". The error is one line that names the part that isn't a fault and lists
// those that are.
std::expected<FaultSet, std::string> parse_faults(std::string_view list);

// The text of --list-faults: name, the expected finding, and the description wrapped at `width`.
std::string describe_faults(std::size_t width = 88);

}  // namespace checkout
