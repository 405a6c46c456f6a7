// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "analysis/human.h"
#include "analysis/json_text.h"
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "format/gunzip.h"
#include "storage/trace_files.h"

namespace dial9::cli {
namespace {

constexpr std::uint64_t kFirstShowNs = 500'000'000;
constexpr std::uint64_t kShowEveryNs = 100'000'000;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

Result<void> read_stdin(const ByteSink& sink, Progress& progress) {
  std::vector<std::uint8_t> chunk(storage::kReadChunkBytes);
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return make_error(ErrorCode::kIo, std::string("can't read: ") + std::strerror(errno));
    }
    if (got == 0) {
      return {};
    }
    const auto size = static_cast<std::size_t>(got);
    if (Result<void> taken = sink(std::span(chunk.data(), size)); !taken) {
      return taken;
    }
    progress.add(size);
  }
}

}  // namespace

void add_paths(Verb& verb, std::vector<std::string>& paths) {
  verb.paths("PATH", paths,
             "Trace files, runs, or a directory of runs (its newest); - is the standard input")
      .required();
}

Result<std::vector<Input>> expand_inputs(const std::vector<std::string>& paths) {
  std::vector<Input> inputs;
  std::set<std::string> seen;
  bool has_stdin = false;
  for (const std::string& path : paths) {
    if (path == "-") {
      if (has_stdin) {
        return make_error(ErrorCode::kInvalidArgument, "the standard input can be read once only");
      }
      has_stdin = true;
      inputs.push_back({"standard input", true, 0});
      continue;
    }
    Result<storage::Expansion> expansion = storage::expand_path(path);
    if (!expansion) {
      return std::unexpected<Error>(expansion.error());
    }
    for (const storage::SegmentFile& file : expansion->files) {
      std::error_code error;
      const auto real = std::filesystem::weakly_canonical(file.path, error);
      if (!error && !seen.insert(real.string()).second) {
        continue;  // each event counts once, however often its file is named
      }
      inputs.push_back({file.path, false, file.size_bytes});
    }
    if (!expansion->other_runs.empty()) {
      std::fprintf(stderr, "dial9: %s: took its newest run, %s there (%s ...)\n",
                   analysis::to_printable(path).c_str(),
                   analysis::more_are(expansion->other_runs.size()).c_str(),
                   analysis::to_printable(expansion->other_runs.front()).c_str());
    }
  }
  return inputs;
}

Progress::Progress(const char* what, const std::vector<Input>& inputs)
    : what_(what), next_ns_(now_ns() + kFirstShowNs), is_enabled_(::isatty(STDERR_FILENO) == 1) {
  for (const Input& input : inputs) {
    total_bytes_ += input.size_bytes;
  }
}

Progress::~Progress() {
  if (is_shown_) {
    std::fputs("\r\033[K", stderr);
  }
}

void Progress::add(std::uint64_t bytes) {
  done_bytes_ += bytes;
  if (!is_enabled_ || now_ns() < next_ns_) {
    return;
  }
  next_ns_ = now_ns() + kShowEveryNs;
  is_shown_ = true;
  const double mib = static_cast<double>(done_bytes_) / (1 << 20);
  if (total_bytes_ >= done_bytes_) {
    const double share = static_cast<double>(done_bytes_) / static_cast<double>(total_bytes_);
    std::fprintf(stderr, "\r%s: %.0f MiB, %.0f %%", what_, mib, share * 100);
  } else {
    std::fprintf(stderr, "\r%s: %.0f MiB", what_, mib);
  }
}

Result<void> read_input(const Input& input, const ByteSink& sink, Progress& progress) {
  if (input.is_stdin) {
    return read_stdin(sink, progress);
  }
  const Result<std::uint64_t> read =
      storage::read_file(input.name, [&](std::span<const std::uint8_t> bytes) -> Result<void> {
        Result<void> taken = sink(bytes);
        progress.add(bytes.size());
        return taken;
      });
  if (!read) {
    return std::unexpected<Error>(read.error());
  }
  return {};
}

Result<void> decode_input(const Input& input, format::Visitor& visitor,
                          const std::function<void(const format::Decoder&)>& started,
                          Progress& progress, std::uint64_t& events) {
  format::Decoder decoder(visitor);
  format::Gunzip gunzip([&](std::span<const std::uint8_t> bytes) { return decoder.feed(bytes); });
  started(decoder);
  Result<void> result = read_input(
      input, [&](std::span<const std::uint8_t> bytes) { return gunzip.feed(bytes); }, progress);
  if (result) {
    result = gunzip.finish();
    if (Result<void> finished = decoder.finish(); result && !finished) {
      result = finished;
    }
  }
  events = decoder.stats().events;
  return result;
}

void report_error(const std::string& name, const Error& error) {
  std::string line = "dial9: " + name + ": " + error.message;
  if (error.offset != kNoOffset && error.message.find(" byte ") == std::string::npos) {
    line += " (at byte " + std::to_string(error.offset) + ")";
  }
  std::fprintf(stderr, "%s\n", analysis::to_printable(line).c_str());
}

int report_usage(const std::string& verb, const std::string& what) {
  std::fprintf(stderr, "dial9 %s: %s\n", verb.c_str(), analysis::to_printable(what).c_str());
  return kUsage;
}

void Outcome::add(const std::string& name, const Result<void>& result, std::uint64_t events) {
  events_ += events;
  if (!result) {
    ++failed_;
    report_error(name, result.error());
  }
}

int Outcome::exit_code() const {
  if (failed_ == 0) {
    return kOk;
  }
  return events_ == 0 ? kUnreadable : kPartlyReadable;
}

}  // namespace dial9::cli
