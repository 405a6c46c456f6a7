// getrusage(), and once a second /proc/self/statm, which is kept open.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "base/descriptor_numbers.h"
#include "sources/kernel_numbers.h"
#include "sources/process_usage.h"

namespace dial9::internal {
namespace {

std::uint64_t ns_of(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

MaybeNumber read_resident_pages(KeptFile& statm) noexcept {
  std::array<char, 128> text;
  const std::string_view sizes = statm.read(text.data(), text.size());
  const std::size_t resident = sizes.find(' ') + 1;  // behind the total size
  const std::size_t end = sizes.find(' ', resident);
  if (resident == 0 || end == std::string_view::npos) return std::nullopt;
  return parse_number(sizes.substr(resident, end - resident));
}

}  // namespace

bool is_process_usage_supported() noexcept { return true; }

bool ProcessUsageReader::read(std::uint64_t now_ns, ProcessResourceUsageEvent* usage) noexcept {
  constexpr std::uint64_t kRssNs = 1'000'000'000;
  rusage r{};
  if (::getrusage(RUSAGE_SELF, &r) != 0) return false;
  const bool is_due = now_ns >= next_rss_ns_ || next_rss_ns_ - now_ns > kRssNs;
  if (is_due && !are_descriptors_few()) {
    next_rss_ns_ = now_ns + kRssNs;
    if (const MaybeNumber pages = read_resident_pages(statm_)) {
      usage->rss_bytes = *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }
  }
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
