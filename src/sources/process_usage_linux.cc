// getrusage() and /proc/self/statm, which is kept open: 1 us a read, not 5.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "sources/kernel_numbers.h"
#include "sources/process_usage.h"

namespace dial9::internal {
namespace {

std::uint64_t ns_of(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

}  // namespace

bool is_process_usage_supported() noexcept { return true; }

bool ProcessUsageReader::read(ProcessResourceUsageEvent* usage) noexcept {
  static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  rusage r{};
  std::array<char, 128> text;
  const std::string_view sizes = statm_.read(text.data(), text.size());
  const std::size_t resident = sizes.find(' ') + 1;  // behind the total size
  const std::size_t end = sizes.find(' ', resident);
  if (resident == 0 || end == std::string_view::npos) return false;
  const MaybeNumber pages = parse_number(sizes.substr(resident, end - resident));
  if (!pages || ::getrusage(RUSAGE_SELF, &r) != 0) return false;
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
  usage->rss_bytes = *pages * page_bytes;
  return true;
}

}  // namespace dial9::internal
