// See thread_list.h.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "base/unique_fd.h"
#include "sources/thread_list.h"

namespace dial9::internal {

std::string_view status_value(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t from = at + key.size();
  return status.substr(from, status.find('\n', from) - from);
}

ThreadFacts parse_thread_status(std::string_view status, int signal) {
  ThreadFacts facts;
  if (!status.starts_with("Name:\t")) return facts;
  facts.name = status_value(status, "Name:\t");
  const std::string_view mask = status_value(status, "\nSigBlk:\t");
  std::uint64_t blocked = 0;
  std::from_chars(mask.data(), mask.data() + mask.size(), blocked, 16);
  facts.is_blocking = signal > 0 && signal <= 64 && (blocked >> (signal - 1) & 1) != 0;
  return facts;
}

void list_threads(std::vector<std::uint32_t>& tids) {
  tids.clear();
  DIR* directory = ::opendir("/proc/self/task");
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    std::uint32_t tid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [stop, error] = std::from_chars(entry->d_name, end, tid);
    if (error == std::errc() && stop == end) tids.push_back(tid);
  }
  ::closedir(directory);
}

std::string read_thread_status(std::uint32_t tid) {
  char path[64] = "/proc/self/task/";
  char* end = std::to_chars(path + std::strlen(path), path + 40, tid).ptr;
  std::memcpy(end, "/status", sizeof "/status");
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

}  // namespace dial9::internal
