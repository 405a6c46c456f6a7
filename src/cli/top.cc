// `dial9 top PID`: workers, rates, queues and the slowest handlers of a process, refreshed from its
// thread buffers. Spec: docs/guide/on_call.md, "top".
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/snapshot_text.h"
#include "cli/snapshot_view.h"
#include "cli/top_page.h"
#include "cli/top_screen.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

constexpr std::size_t kRows = 10;
constexpr std::size_t kPlainWidth = 120;  // of a page that isn't for a terminal

struct Options {
  std::uint32_t pid = 0;
  std::string interval = "1s";
  bool is_once = false;
  bool is_json = false;
};

int show_once(const ProcessView& view, bool is_json) {
  if (is_json) {
    write_out(snapshot_json(view, ""));
  } else {
    for (const std::string& line : top_page(view, kPlainWidth, kNoHeight)) write_out(line + "\n");
  }
  flush_out();
  return kOk;
}

// Until the user or the process ends it.
Result<void> refresh(internal::TargetProcess& target, ProcessView view, std::uint64_t interval_ns) {
  TopScreen screen;
  for (;;) {
    screen.show(top_page(view, screen.width(), screen.height()));
    if (!screen.wait(interval_ns)) return {};
    Result<internal::TargetLook> look = target.look(0);
    if (!look) return std::unexpected(look.error());
    if (look->kernel.threads.empty()) {
      return make_error(ErrorCode::kNotFound, "the process has ended");
    }
    view = make_view(std::move(*look), kRows);
  }
}

int run(const Options& options) {
  const std::string name = "top " + std::to_string(options.pid);
  const auto fail = [&](const Error& error) {
    report_error(name, error);
    return kUnreadable;
  };
  Result<internal::TargetProcess> target = internal::TargetProcess::open(options.pid);
  if (!target) return fail(target.error());
  Result<internal::TargetLook> look = target->look(0);
  if (!look) return fail(look.error());
  ProcessView view = make_view(std::move(*look), kRows);
  if (options.is_once || options.is_json || !TopScreen::is_there()) {
    return show_once(view, options.is_json);
  }
  const Result<void> shown =
      refresh(*target, std::move(view), parse_duration(options.interval).value_or(1'000'000'000));
  return shown ? kOk : fail(shown.error());
}

}  // namespace

void add_top(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    verb.number("PID", options.pid, "The process; it notices nothing").required().positive();
    verb.duration("--interval", options.interval, "Time between two pages, at least 100ms")
        .check([](const std::string& text) {
          return parse_duration(text).value_or(0) < 100'000'000
                     ? "--interval " + text + ": at least 100ms"
                     : std::string();
        })
        .with_default_shown();
    verb.flag("--once", options.is_once, "One page and exit, as without a terminal");
    verb.flag("--json", options.is_json, "One page as JSON (as of snapshot --json)");
  };
  arguments.add<Options>("top",
                         "A process's workers, queues and slowest handlers, refreshed; q ends it",
                         declare, run);
}

}  // namespace dial9::cli
