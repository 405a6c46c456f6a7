// See quiet_kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/quiet_kernel.h"

#include <sys/utsname.h>

#include <charconv>
#include <system_error>
#include <utility>

namespace dial9::internal {
namespace {

// "6.1.0-13-amd64" is {6, 1}; {0, 0}: no version.
std::pair<unsigned, unsigned> version_of(std::string_view release) {
  const char* const end = release.data() + release.size();
  unsigned major = 0;
  unsigned minor = 0;
  const auto [dot, error] = std::from_chars(release.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return {0, 0};
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return {0, 0};
  return {major, minor};
}

}  // namespace

std::string interruption_risk(std::string_view machine, std::string_view release) {
  if (machine == "x86_64" && version_of(release) >= std::pair(5U, 9U)) return "";
  return "this kernel (" + std::string(release) + " on " + std::string(machine) +
         ") may make calls of the host fail with EINTR when a sample is due; Linux 5.9 or later on "
         "x86_64 doesn't: update it, or accept that by "
         "CpuSampleOptions::allow_interrupted_calls";
}

std::string interruption_risk_here() {
  utsname names{};
  if (::uname(&names) != 0) return interruption_risk("?", "?");
  return interruption_risk(names.machine, names.release);
}

}  // namespace dial9::internal
