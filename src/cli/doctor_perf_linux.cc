// A real try of perf_event_open: what other tools, and CPU samples, need of the machine.
// SPDX-License-Identifier: Apache-2.0
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/unique_fd.h"
#include "cli/doctor_facts.h"

namespace dial9::cli {
namespace {

std::optional<int> setting(const char* path) {
  std::ifstream file(path);
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  return static_cast<int>(std::strtol(text.c_str(), nullptr, 10));
}

}  // namespace

PerfFacts look_at_perf() {
  PerfFacts facts;
  facts.paranoid = setting("/proc/sys/kernel/perf_event_paranoid");
  facts.kptr_restrict = setting("/proc/sys/kernel/kptr_restrict");
  perf_event_attr wanted{};
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.size = sizeof wanted;
  wanted.config = PERF_COUNT_SW_TASK_CLOCK;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  const UniqueFd event(
      static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) {
    facts.open_error = errno;
    return facts;
  }
  volatile std::uint64_t work = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) work = work + i;
  std::uint64_t count = 0;
  facts.has_counted =
      ::read(event.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count) && count != 0;
  return facts;
}

}  // namespace dial9::cli
