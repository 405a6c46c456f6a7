// SPDX-License-Identifier: Apache-2.0
#include "sources/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/unique_fd.h"

namespace dial9::internal {
namespace {

constexpr std::size_t kMostBytes = 64 << 10;
// Version 1 says "no limit" as the largest page-aligned number.
constexpr std::uint64_t kNoLimitV1 = std::uint64_t{1} << 62;

std::string read_text(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char bytes[4096];
  while (fd && text.size() < kMostBytes) {
    const ssize_t n = ::read(fd.get(), bytes, sizeof bytes);
    if (n <= 0) break;
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return text;
}

bool is_readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

std::string if_readable(const std::string& path) {
  return is_readable(path) ? path : std::string();
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(by));
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return parts;
}

bool has_word(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Our group's path in a hierarchy: of version 2 for an empty `controller`.
std::optional<std::string> group_path(std::string_view cgroup_file, std::string_view controller) {
  for (const std::string_view line : split(cgroup_file, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_meant = controller.empty() ? controllers.empty() && line.substr(0, first) == "0"
                                             : has_word(controllers, controller);
    if (is_meant) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// "id parent device root mount-point options [fields...] - type source super-options"
struct Mount {
  std::string root;
  std::string point;
};
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view controller) {
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool is_meant = controller.empty()
                              ? after[0] == "cgroup2"
                              : after[0] == "cgroup" && has_word(after[2], controller);
    if (is_meant) return Mount{std::string(before[3]), std::string(before[4])};
  }
  return std::nullopt;
}

// Our group's directory, and the mount point that is above it; the directory ends without '/'.
struct Group {
  std::string top;
  std::string directory;

  // The group itself and those above it, down to the mount point.
  std::vector<std::string> upwards() const {
    std::vector<std::string> all;
    for (std::string at = directory; at.size() >= top.size(); at.resize(at.rfind('/'))) {
      all.push_back(at);
      if (at.size() == top.size()) break;
    }
    return all;
  }
};

std::optional<Group> find_group(const std::string& root, std::string_view controller) {
  const auto path = group_path(read_text(root + "/proc/self/cgroup"), controller);
  const auto mount = find_mount(read_text(root + "/proc/self/mountinfo"), controller);
  if (!path || !mount) return std::nullopt;
  Group group;
  group.top = root + mount->point;
  std::string below = *path;
  // A container's mount may begin at our own group, or somewhere above it.
  if (mount->root != "/" && below.starts_with(mount->root))
    below = below.substr(mount->root.size());
  if (below == "/" || below.find("..") != below.npos) below.clear();
  group.directory = group.top + below;
  if (!is_readable(group.directory)) group.directory = group.top;
  return group;
}

// CPU time a second that the directory's own limit allows.
std::optional<double> cpu_limit(const std::string& directory, int version) {
  MaybeNumber quota;
  MaybeNumber period;
  if (version == 2) {
    const std::string text = read_text(directory + "/cpu.max");
    const auto words = split(std::string_view(text).substr(0, text.find('\n')), ' ');
    if (words.size() == 2) {
      quota = parse_number(words[0]);
      period = parse_number(words[1]);
    }
  } else {
    quota = parse_number(read_text(directory + "/cpu.cfs_quota_us"));  // -1: none
    if (quota) period = parse_number(read_text(directory + "/cpu.cfs_period_us"));
  }
  if (!quota || period.value_or(0) == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

MaybeNumber memory_limit(const std::string& directory, int version) {
  const MaybeNumber limit = parse_number(
      read_text(directory + (version == 2 ? "/memory.max" : "/memory.limit_in_bytes")));
  return limit && version == 1 && *limit >= kNoLimitV1 ? std::nullopt : limit;
}

// Version 1 where it has the controller (of a hybrid it has), else version 2.
struct Controller {
  Group group;
  int version;
};
std::optional<Controller> find_controller(const std::string& root, std::string_view name,
                                          const char* file_v1, const char* file_v2) {
  if (auto v1 = find_group(root, name); v1 && is_readable(v1->directory + file_v1)) {
    return Controller{*v1, 1};
  }
  if (auto v2 = find_group(root, ""); v2 && is_readable(v2->directory + file_v2)) {
    return Controller{*v2, 2};
  }
  return std::nullopt;
}

std::optional<Controller> find_cpu(const std::string& root) {
  return find_controller(root, "cpu", "/cpu.stat", "/cpu.stat");
}
std::optional<Controller> find_memory(const std::string& root) {
  return find_controller(root, "memory", "/memory.usage_in_bytes", "/memory.current");
}

void find_cpu_files(const std::string& root, CgroupFiles* files) {
  const auto cpu = find_cpu(root);
  if (!cpu) return;
  files->cpu_version = cpu->version;
  files->cpu_stat = cpu->group.directory + "/cpu.stat";
  files->cpu_groups = cpu->group.upwards();
  for (const std::string& directory : files->cpu_groups) {
    if (!cpu_limit(directory, cpu->version)) continue;
    files->cpu_stat = directory + "/cpu.stat";
    break;
  }
  if (cpu->version == 2) {
    files->cpu_usage = cpu->group.directory + "/cpu.stat";
  } else if (const auto usage = find_group(root, "cpuacct")) {
    files->cpu_usage = if_readable(usage->directory + "/cpuacct.usage");
  }
}

void find_pressure(const std::string& root, CgroupFiles* files) {
  std::string directory = root + "/proc/pressure/";
  std::string ending;
  const auto v2 = find_group(root, "");
  // The hierarchy's own root has no events file: its pressure is the machine's.
  if (v2 && is_readable(v2->directory + "/cgroup.events") &&
      is_readable(v2->directory + "/cpu.pressure")) {
    directory = v2->directory + "/";
    ending = ".pressure";
    files->is_pressure_own = true;
  }
  files->cpu_pressure = if_readable(directory + "cpu" + ending);
  files->memory_pressure = if_readable(directory + "memory" + ending);
  files->io_pressure = if_readable(directory + "io" + ending);
}

}  // namespace

CgroupFiles find_cgroup_files(const std::string& root) {
  CgroupFiles files;
  find_cpu_files(root, &files);
  if (const auto memory = find_memory(root)) {
    const bool is_v2 = memory->version == 2;
    const std::string& directory = memory->group.directory;
    files.memory_version = memory->version;
    files.memory_groups = memory->group.upwards();
    files.memory_usage = directory + (is_v2 ? "/memory.current" : "/memory.usage_in_bytes");
    files.memory_events = if_readable(directory + (is_v2 ? "/memory.events" : "/memory.failcnt"));
  }
  find_pressure(root, &files);
  return files;
}

CgroupLimits read_cgroup_limits(const CgroupFiles& files) {
  CgroupLimits limits;
  for (const std::string& directory : files.cpu_groups) {
    const auto limit = cpu_limit(directory, files.cpu_version);
    if (limit && (!limits.cpus || *limit < *limits.cpus)) limits.cpus = limit;
  }
  for (const std::string& directory : files.memory_groups) {
    const auto limit = memory_limit(directory, files.memory_version);
    if (limit && (!limits.memory_bytes || *limit < *limits.memory_bytes)) {
      limits.memory_bytes = limit;
    }
  }
  return limits;
}

}  // namespace dial9::internal
