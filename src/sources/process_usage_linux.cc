// getrusage().
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include "sources/process_usage.h"

namespace dial9::internal {
namespace {

std::uint64_t ns_of(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

}  // namespace

bool is_process_usage_supported() noexcept { return true; }

bool read_process_usage(ProcessResourceUsageEvent* usage) noexcept {
  rusage r{};
  if (::getrusage(RUSAGE_SELF, &r) != 0) return false;
  const auto number = [](long n) { return static_cast<std::uint64_t>(n); };
  usage->user_cpu_ns = ns_of(r.ru_utime);
  usage->system_cpu_ns = ns_of(r.ru_stime);
  usage->max_rss_bytes = number(r.ru_maxrss) * 1024;
  usage->minor_faults = number(r.ru_minflt);
  usage->major_faults = number(r.ru_majflt);
  usage->block_input_ops = number(r.ru_inblock);
  usage->block_output_ops = number(r.ru_oublock);
  usage->voluntary_context_switches = number(r.ru_nvcsw);
  usage->involuntary_context_switches = number(r.ru_nivcsw);
  return true;
}

}  // namespace dial9::internal
