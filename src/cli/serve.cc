// `dial9 serve`: the page and its API over the runs of a directory.
// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <malloc.h>
#include <sys/resource.h>

#include <cstdio>
#include <string>

#include "base/whole_file.h"
#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/flame_options.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

constexpr std::size_t kMostTokenBytes = 4096;

struct Options {
  server::ServeOptions serve;
  std::string token_file;
  std::uint64_t memory_mib = 2048;
  FlameOptions flame;  // where names come from
};

// The C library sets 64 MiB of addresses aside for each thread: of a bound on addresses (ulimit -v)
// that leaves some threads with plenty and others with nothing, and the same request is answered
// now and refused then. Before any thread starts.
void share_bounded_memory() {
#if defined(__GLIBC__)
  rlimit bound{};
  const bool is_bounded = ::getrlimit(RLIMIT_AS, &bound) == 0 && bound.rlim_cur != RLIM_INFINITY;
  if (is_bounded) (void)::mallopt(M_ARENA_MAX, 1);
#endif
}

int run(Options& options) {
  share_bounded_memory();
  options.serve.memory_bytes = options.memory_mib << 20;
  FileNamer namer(options.flame);
  options.serve.namer = &namer;
  if (!options.token_file.empty()) {
    const Result<std::string> text = read_whole_file(options.token_file, kMostTokenBytes);
    if (!text) {
      report_error("serve", text.error());
      return kUnreadable;
    }
    options.serve.token = text->substr(0, text->find('\n'));
    if (options.serve.token.empty()) {
      std::fprintf(stderr, "dial9: %s: no token in its first line\n", options.token_file.c_str());
      return kUnreadable;
    }
  }
  const Result<void> served = server::serve(options.serve, [](const server::Serving& serving) {
    write_out("serving on " + serving.url + "\n");
    flush_out();
  });
  if (served) {
    return kOk;
  }
  report_error("serve", served.error());
  return served.error().code == ErrorCode::kInvalidArgument ? kUsage : kUnreadable;
}

}  // namespace

void add_serve(Arguments& arguments) {
  const auto declare = [](Verb& verb, Options& options) {
    verb.path("DIR", options.serve.path, "A directory of runs, a run, or a trace file").required();
    verb.path("--base", options.serve.base_path,
              "Another trace, run or directory of runs (its newest): the page's flame graphs can "
              "be compared with it");
    verb.text("--address", options.serve.address,
              "IP address to listen on; one that isn't loopback asks for a token")
        .with_default_shown();
    verb.number("--port", options.serve.port, "Port; 0: any free one").with_default_shown();
    verb.path("--token-file", options.token_file,
              "File whose first line is the token that requests must bear");
    verb.number("--memory", options.memory_mib,
                "MiB that loaded runs may take; up to 1.6 times as much while one is loaded")
        .in_range(1, kMostMemoryMib)
        .with_default_shown();
    add_symbol_options(verb, options.flame);
    verb.number("--threads", options.serve.threads, "Threads that answer requests")
        .in_range(1, 64)
        .with_default_shown();
  };
  arguments.add<Options>("serve", "Show traces in the browser; ends with Ctrl-C", declare, run);
}

}  // namespace dial9::cli
