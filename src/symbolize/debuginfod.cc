// See debuginfod.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/debuginfod.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "symbolize/frame_bytes.h"
#include "symbolize/worker_messages.h"

namespace dial9::symbolize {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> variables_of(const DebuginfodOptions& options) {
  const int seconds = std::max(options.fetch_ms / 1000, 1);
  return {"DEBUGINFOD_URLS=" + options.urls,
          "DEBUGINFOD_CACHE_PATH=" + options.directory,
          "DEBUGINFOD_MAXSIZE=" + std::to_string(options.most_file_bytes),
          "DEBUGINFOD_MAXTIME=" + std::to_string(seconds),
          "DEBUGINFOD_TIMEOUT=" + std::to_string(std::min(seconds, 20)),
          "DEBUGINFOD_RETRY_LIMIT=1"};
}

}  // namespace

Debuginfod::Debuginfod(DebuginfodOptions options)
    : options_(std::move(options)), process_(options_.command, variables_of(options_)) {}

Result<std::string> Debuginfod::fetch(const std::string& build_id, const std::string& name) {
  if (!given_up_.empty()) return make_error(ErrorCode::kCancelled, given_up_);
  const auto give_up = [&](const Error& error) {
    given_up_ = error.message;
    return std::unexpected(error);
  };
  std::error_code ignored;
  fs::create_directories(fs::path(options_.directory).parent_path(), ignored);
  (void)::mkdir(options_.directory.c_str(), 0700);
  if (const auto started = process_.start(); !started) {
    if (process_.is_short()) return std::unexpected(started.error());
    return give_up(started.error());
  }
  ByteWriter question;
  question.u32(kFetchQuestion);
  question.text(build_id);
  question.text(name);
  question.u64(options_.most_file_bytes);
  question.u32(options_.shows_progress ? 1 : 0);
  const auto bytes = process_.ask(question.bytes(), options_.fetch_ms);
  if (!bytes) return give_up(bytes.error());
  const WorkerAnswer<std::string> answer = read_fetch_answer(*bytes);
  if (!answer.makes_sense) {
    process_.stop();
    return give_up(answer.value.error());
  }
  if (!answer.value) {
    const Error& error = answer.value.error();
    const bool is_of_file = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kLimit;
    if (is_of_file) return std::unexpected(error);
    return give_up(error);
  }
  const std::string& text = *answer.value;
  shrink(text);
  return text;
}

// The library itself only forgets by age. Files lie in a folder each, by build id.
void Debuginfod::shrink(const std::string& but_not) const {
  struct Entry {
    timespec used{};
    std::uint64_t bytes = 0;
    std::string path;
  };
  const auto facts_of = [](const std::string& path) {
    struct stat facts{};
    if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) facts = {};
    return facts;
  };
  const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)::utimensat(AT_FDCWD, but_not.c_str(), now, AT_SYMLINK_NOFOLLOW);
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(options_.directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::string path = at->path().string() + "/debuginfo";
    const struct stat facts = facts_of(path);
    if (facts.st_size == 0) continue;
    total += static_cast<std::uint64_t>(facts.st_size);
    entries.push_back({facts.st_atim, static_cast<std::uint64_t>(facts.st_size), path});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (total <= options_.most_bytes) break;
    if (entry.path != but_not && fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace dial9::symbolize
