// Directories and names by POSIX calls, since names are bytes and nothing here may throw. See
// trace_files.h.
// SPDX-License-Identifier: Apache-2.0
#include "storage/trace_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>

#include "base/os_error.h"
#include "base/unique_fd.h"
#include "format/gunzip.h"

namespace dial9::storage {
namespace {

constexpr std::string_view kWhatToGive =
    "give a trace file, the directory of a run, or a directory that holds runs";

std::int64_t modified_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::string join_path(const std::string& directory, std::string_view name) {
  std::string path = directory;
  if (!path.ends_with('/')) {
    path += '/';
  }
  return path.append(name);
}

std::string last_part(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

struct Entry {
  std::string name;
  struct stat status;
};

// The regular files and directories in `directory`, links followed, by name. What vanishes or can't
// be looked at meanwhile is left out.
Result<std::vector<Entry>> list_entries(const std::string& directory) {
  const std::unique_ptr<DIR, CloseDirectory> open(::opendir(directory.c_str()));
  if (!open) {
    return os_error(errno, "list", directory, kWhatToGive);
  }
  std::vector<Entry> entries;
  for (;;) {
    errno = 0;
    const dirent* const found = ::readdir(open.get());
    if (found == nullptr) {
      if (errno != 0) {
        return os_error(errno, "list", directory);
      }
      break;
    }
    Entry entry{found->d_name, {}};
    if (entry.name == "." || entry.name == ".." ||
        ::fstatat(::dirfd(open.get()), found->d_name, &entry.status, 0) != 0) {
      continue;
    }
    if (S_ISREG(entry.status.st_mode) || S_ISDIR(entry.status.st_mode)) {
      entries.push_back(std::move(entry));
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

SegmentFile as_segment(const std::string& path, const SegmentName& name,
                       const struct stat& status) {
  return {path, name.state, name.index, static_cast<std::uint64_t>(status.st_size),
          modified_ns(status)};
}

// The segments among the entries of `directory`, in recording order, one a number.
std::vector<SegmentFile> segments_of(const std::string& directory,
                                     const std::vector<Entry>& entries) {
  std::vector<SegmentFile> segments;
  for (const Entry& entry : entries) {
    const SegmentName name = parse_segment_name(entry.name);
    if (name.state == SegmentState::kActive && entry.status.st_size == 0) {
      continue;  // opened and not yet written to, or by a process that died just then
    }
    if (S_ISREG(entry.status.st_mode) && name.state != SegmentState::kLoose) {
      segments.push_back(as_segment(join_path(directory, entry.name), name, entry.status));
    }
  }
  // Sealed comes before compressed in SegmentState, so unique() keeps the plain one of a pair.
  const auto order = [](const SegmentFile& segment) {
    return std::tuple(segment.state == SegmentState::kActive, segment.index, segment.state,
                      std::string_view(segment.path));
  };
  std::sort(segments.begin(), segments.end(),
            [&](const SegmentFile& a, const SegmentFile& b) { return order(a) < order(b); });
  const auto is_same = [](const SegmentFile& a, const SegmentFile& b) {
    return a.index == b.index &&
           (a.state == SegmentState::kActive) == (b.state == SegmentState::kActive);
  };
  segments.erase(std::unique(segments.begin(), segments.end(), is_same), segments.end());
  return segments;
}

RunInfo describe_run(const std::string& path, const std::vector<SegmentFile>& segments) {
  RunInfo run{path,
              last_part(path),
              false,
              false,
              segments.size(),
              0,
              segments.front().modified_unix_ns,
              segments.front().modified_unix_ns};
  for (const SegmentFile& segment : segments) {
    run.has_active_segment |= segment.state == SegmentState::kActive;
    run.size_bytes += segment.size_bytes;
    run.first_modified_unix_ns = std::min(run.first_modified_unix_ns, segment.modified_unix_ns);
    run.last_modified_unix_ns = std::max(run.last_modified_unix_ns, segment.modified_unix_ns);
  }
  return run;
}

bool is_trace_file_name(std::string_view name) {
  return name.ends_with(".bin") || name.ends_with(".bin.gz");
}

std::vector<RunInfo> runs_among(const std::string& directory, const std::vector<Entry>& entries) {
  std::vector<RunInfo> runs;
  if (const auto own = segments_of(directory, entries); !own.empty()) {
    runs.push_back(describe_run(directory, own));
  }
  for (const Entry& entry : entries) {
    const std::string path = join_path(directory, entry.name);
    if (S_ISDIR(entry.status.st_mode)) {
      const auto inside = list_entries(path);
      if (!inside) {
        continue;  // no right to look: the others are still worth showing
      }
      if (const auto segments = segments_of(path, *inside); !segments.empty()) {
        runs.push_back(describe_run(path, segments));
      }
    } else if (const SegmentName name = parse_segment_name(entry.name);
               name.state == SegmentState::kLoose && is_trace_file_name(entry.name)) {
      runs.push_back(describe_run(path, {as_segment(path, name, entry.status)}));
      runs.back().is_file = true;
    }
  }
  std::sort(runs.begin(), runs.end(), [](const RunInfo& a, const RunInfo& b) {
    return std::tie(b.last_modified_unix_ns, a.name) < std::tie(a.last_modified_unix_ns, b.name);
  });
  return runs;
}

Result<Expansion> expand_directory(const std::string& path) {
  const auto entries = list_entries(path);
  if (!entries) {
    return std::unexpected(entries.error());
  }
  const std::vector<RunInfo> runs = runs_among(path, *entries);
  if (runs.empty()) {
    return make_error(ErrorCode::kNotFound,
                      "no trace in '" + path +
                          "': it holds no trace.{n}.bin, nor does a directory "
                          "in it; " +
                          std::string(kWhatToGive));
  }
  std::string taken = path;
  Result<Expansion> expansion = Expansion{segments_of(path, *entries), {}};
  if (expansion->files.empty()) {
    taken = runs.front().path;
    expansion = expand_path(taken);
  }
  if (expansion) {
    expansion->other_runs.clear();
    for (const RunInfo& run : runs) {
      if (run.path != taken) {
        expansion->other_runs.push_back(run.path);
      }
    }
  }
  return expansion;
}

// Opens for reading. A segment that was sealed or compressed since it was listed has another name.
UniqueFd open_file(std::string path) {
  for (;;) {
    // O_NONBLOCK: opening a pipe would wait for its writer.
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file || errno != ENOENT) {
      return file;
    }
    switch (parse_segment_name(last_part(path)).state) {
      case SegmentState::kActive:
        path.resize(path.size() - std::string_view(".active").size());
        break;
      case SegmentState::kSealed:
        path += ".gz";
        break;
      case SegmentState::kCompressed:
      case SegmentState::kLoose:
        errno = ENOENT;
        return file;
    }
  }
}

}  // namespace

SegmentName parse_segment_name(std::string_view file_name) {
  constexpr std::string_view prefix = "trace.";
  SegmentName name;
  if (!file_name.starts_with(prefix)) {
    return name;
  }
  file_name.remove_prefix(prefix.size());
  const char* const begin = file_name.data();
  const char* const end = begin + file_name.size();
  const auto [rest, error] = std::from_chars(begin, end, name.index);
  const std::string_view extension(rest, static_cast<std::size_t>(end - rest));
  // One name a number: no zeros in front.
  if (error != std::errc{} || (*begin == '0' && rest - begin > 1)) {
    return {};
  }
  if (extension == ".bin") {
    name.state = SegmentState::kSealed;
  } else if (extension == ".bin.gz") {
    name.state = SegmentState::kCompressed;
  } else if (extension == ".bin.active") {
    name.state = SegmentState::kActive;
  } else {
    return {};
  }
  return name;
}

Result<std::vector<RunInfo>> list_runs(const std::string& directory) {
  const auto entries = list_entries(directory);
  if (!entries) {
    return std::unexpected(entries.error());
  }
  return runs_among(directory, *entries);
}

Result<Expansion> expand_path(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return os_error(errno, "open", path, kWhatToGive);
  }
  if (S_ISDIR(status.st_mode)) {
    return expand_directory(path);
  }
  if (!S_ISREG(status.st_mode)) {
    return make_error(ErrorCode::kInvalidArgument, "'" + path +
                                                       "' is neither a file nor a "
                                                       "directory; " +
                                                       std::string(kWhatToGive));
  }
  return Expansion{{as_segment(path, parse_segment_name(last_part(path)), status)}, {}};
}

Result<std::uint64_t> read_file(const std::string& path, const ByteSink& sink,
                                const ProgressSink& progress) {
  const UniqueFd file = open_file(path);
  if (!file) {
    return os_error(errno, "open", path);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) {
    return os_error(errno, "look at", path);
  }
  if (!S_ISREG(status.st_mode)) {
    return make_error(ErrorCode::kInvalidArgument, "'" + path + "' is no regular file");
  }
  const auto chunk = std::make_unique_for_overwrite<std::uint8_t[]>(kReadChunkBytes);
  ReadProgress so_far{0, static_cast<std::uint64_t>(status.st_size)};
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.get(), kReadChunkBytes);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return os_error(errno, "read", path);
    }
    if (got == 0) {
      return so_far.read_bytes;
    }
    so_far.read_bytes += static_cast<std::uint64_t>(got);
    if (Result<void> sunk = sink({chunk.get(), static_cast<std::size_t>(got)}); !sunk) {
      return std::unexpected(std::move(sunk.error()));
    }
    if (progress) {
      progress(so_far);
    }
  }
}

Result<FileDecode> decode_file(const std::string& path, format::Visitor& visitor,
                               const ProgressSink& progress) {
  FileDecode decode;
  format::Decoder decoder(visitor);
  format::Gunzip gunzip([&](std::span<const std::uint8_t> bytes) { return decoder.feed(bytes); });
  const Result<std::uint64_t> read = read_file(
      path,
      [&](std::span<const std::uint8_t> bytes) {
        decode.read_bytes += bytes.size();
        decode.outcome = gunzip.feed(bytes);
        return decode.outcome;
      },
      progress);
  if (!read && decode.outcome) {
    return std::unexpected(read.error());  // the system's
  }
  if (decode.outcome) {
    decode.outcome = gunzip.finish();
  }
  const Result<void> finished = decoder.finish();
  if (decode.outcome) {
    decode.outcome = finished;
  }
  if (!decode.outcome && decode.outcome.error().code == ErrorCode::kCancelled) {
    return std::unexpected(decode.outcome.error());
  }
  decode.stats = decoder.stats();
  decode.is_gzip = gunzip.is_gzip();
  return decode;
}

}  // namespace dial9::storage
