// `dial9 snapshot PID`: what a process is in right now, hung or not, as a trace and a page of text.
// Spec: docs/spec/snapshot.md.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>

#include "analysis/human.h"
#include "base/os_error.h"
#include "base/unique_fd.h"
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/snapshot_text.h"
#include "cli/snapshot_view.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

constexpr std::size_t kRows = 10;

struct Options {
  std::uint32_t pid = 0;
  std::string output;
  std::uint64_t history_mib = 64;
  bool is_json = false;
  bool has_trace = true;
};

// "dial9-snapshot-1234-20261129T220102.bin"
std::string default_name(const internal::TargetLook& look) {
  std::string time = analysis::iso_time(look.realtime_ns).substr(0, 19);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return "dial9-snapshot-" + std::to_string(look.kernel.pid) + "-" + time + ".bin";
}

Result<void> write_all(int fd, std::span<const std::uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return os_error(errno, "write", path, "give another place with -o");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

// Never over a file that is there.
Result<void> write_parts(int fd, const ProcessView& view, const std::string& path) {
  for (const internal::TargetBytes& part : view.look.parts) {
    if (auto written = write_all(fd, part.bytes, path); !written) return written;
  }
  return write_all(fd, view.own_stream, path);
}

// Whole or not at all.
Result<void> write_trace(const ProcessView& view, const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return os_error(errno, "create", path, "give another name with -o");
  Result<void> written = write_parts(fd.get(), view, path);
  if (!written) ::unlink(path.c_str());
  return written;
}

int run(const Options& options) {
  if (!options.has_trace && !options.output.empty()) {
    return report_usage("snapshot", "-o and --no-trace exclude each other");
  }
  const std::string name = "snapshot " + std::to_string(options.pid);
  Result<internal::TargetProcess> target = internal::TargetProcess::open(options.pid);
  if (!target) {
    report_error(name, target.error());
    return kUnreadable;
  }
  Result<internal::TargetLook> look = target->look(options.history_mib << 20);
  if (!look) {
    report_error(name, look.error());
    return kUnreadable;
  }
  const ProcessView view = make_view(std::move(*look), kRows);
  std::string path;
  int exit_code = view.trace.is_truncated() ? kPartlyReadable : kOk;
  if (options.has_trace) {
    path = options.output.empty() ? default_name(view.look) : options.output;
    if (const Result<void> written = write_trace(view, path); !written) {
      report_error(name, written.error());
      path.clear();
      exit_code = kOutputLost;
    }
  }
  write_out(options.is_json ? snapshot_json(view, path) : snapshot_text(view, path));
  flush_out();
  return exit_code;
}

}  // namespace

void add_snapshot(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    verb.number("PID", options.pid, "The process; it isn't stopped and needs not answer")
        .required()
        .positive();
    verb.path("-o,--output", options.output,
              "File of the trace; else dial9-snapshot-PID-TIME.bin here");
    verb.number("--history-mib", options.history_mib,
                "MiB of its segments that the trace begins with; 0: the thread buffers only")
        .in_range(0, 4096)
        .with_default_shown();
    verb.flag("!--no-trace", options.has_trace, "Write no trace");
    verb.flag("--json", options.is_json, "JSON instead of text");
  };
  arguments.add<Options>("snapshot",
                         "What a running, hung or stopped process is in: a page, and a trace",
                         declare, run);
}

}  // namespace dial9::cli
