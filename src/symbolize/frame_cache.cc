// See frame_cache.h. A file: magic, version, build id, a hash of the rest, which is a table
// (frame_table.h).
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "base/unique_fd.h"
#include "symbolize/elf_file.h"
#include "symbolize/frame_bytes.h"

namespace dial9::symbolize {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x73656d6172663964;  // "d9frames"
constexpr std::uint32_t kVersion = 2;                 // of the file, and of what we make of DWARF
constexpr const char* kSuffix = ".frames";

std::uint64_t hash_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3U;
  return hash;
}

// Of one of ours alone: the folder may be one that others can write to.
Bytes read_own(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_uid != ::geteuid() ||
      static_cast<std::uint64_t>(facts.st_size) > FrameCache::kMostModuleBytes) {
    return {};
  }
  Bytes bytes(static_cast<std::size_t>(facts.st_size));
  if (!reader_of(fd.get())(0, bytes)) return {};
  (void)::futimens(fd.get(), nullptr);  // used now
  return bytes;
}

bool write_whole(const std::string& path, std::span<const std::uint8_t> bytes) {
  const UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return false;
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string FrameCache::path_of(const std::string& build_id) const {
  return options_.directory + "/" + build_id + kSuffix;
}

FrameTable FrameCache::load(const std::string& build_id) const {
  if (options_.directory.empty()) return {};
  const Bytes bytes = read_own(path_of(build_id));
  ByteReader head(bytes);
  const bool is_ours = head.u64() == kMagic && head.u32() == kVersion && head.text() == build_id;
  const std::uint64_t hash = head.u64();
  if (!is_ours || !head.is_whole() || hash_of(head.rest()) != hash) return {};
  return FrameTable::read(head, kMostModuleBytes);
}

void FrameCache::save(const std::string& build_id, const FrameTable& frames) const {
  if (options_.directory.empty() || frames.written_bytes() > kMostModuleBytes) return;
  ByteWriter body;
  frames.write(body);
  ByteWriter file;
  file.u64(kMagic);
  file.u32(kVersion);
  file.text(build_id);
  file.u64(hash_of(body.bytes()));
  file.append(body.bytes());
  if (file.bytes().size() > kMostModuleBytes) return;
  std::error_code error;
  fs::create_directories(fs::path(options_.directory).parent_path(), error);
  (void)::mkdir(options_.directory.c_str(), 0700);
  const std::string path = path_of(build_id);
  const std::string temporary = path + "." + std::to_string(::getpid());
  (void)::unlink(temporary.c_str());  // of a process of this number that was killed
  if (!write_whole(temporary, file.bytes()) || ::rename(temporary.c_str(), path.c_str()) != 0) {
    (void)::unlink(temporary.c_str());
  }
  shrink();
}

// What a killed process left half written counts, and goes, too.
void FrameCache::shrink() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(options_.directory, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (at->path().filename().string().find(kSuffix) == std::string::npos) continue;
    if (!fs::is_regular_file(at->symlink_status(gone))) continue;
    const Entry entry{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    total += entry.bytes;
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= options_.most_bytes) break;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace dial9::symbolize
