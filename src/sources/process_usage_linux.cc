// getrusage() and /proc/self/statm. The file is opened at each sample: 5 us ten times a second buy
// that no descriptor is held.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "base/unique_fd.h"
#include "sources/process_usage.h"

namespace dial9::internal {
namespace {

std::uint64_t ns_of(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

bool read_rss(std::uint64_t* bytes) {
  const UniqueFd fd(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  if (!fd || ::read(fd.get(), text, sizeof text - 1) <= 0) return false;
  char* second = nullptr;
  std::strtoull(text, &second, 10);  // total size; the resident pages follow
  *bytes = std::strtoull(second, nullptr, 10) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return true;
}

}  // namespace

bool is_process_usage_supported() noexcept { return true; }

bool read_process_usage(ProcessResourceUsageEvent* usage) noexcept {
  rusage r{};
  std::uint64_t rss = 0;
  if (::getrusage(RUSAGE_SELF, &r) != 0 || !read_rss(&rss)) return false;
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
  usage->rss_bytes = rss;
  return true;
}

}  // namespace dial9::internal
