// `dial9 serve`: the page and its API over the runs of a directory.
// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace dial9::cli {
namespace {

struct Options {
  server::ServeOptions serve;
  std::string token_file;
  std::uint64_t memory_mib = 2048;
};

int run(Options& options) {
  options.serve.memory_bytes = options.memory_mib << 20;
  if (!options.token_file.empty()) {
    std::ifstream file(options.token_file);
    if (!std::getline(file, options.serve.token) || options.serve.token.empty()) {
      std::fprintf(stderr, "dial9: %s: no token in its first line\n", options.token_file.c_str());
      return kUsage;
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

void add_serve(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("serve", "Show traces in the browser; ends with Ctrl-C");
  const auto options = std::make_shared<Options>();
  verb->add_option("DIR", options->serve.path, "A directory of runs, a run, or a trace file")
      ->required();
  verb->add_option("--address", options->serve.address,
                   "IP address to listen on; one that isn't loopback asks for a token")
      ->capture_default_str();
  verb->add_option("--port", options->serve.port, "Port; 0: any free one")->capture_default_str();
  verb->add_option("--token-file", options->token_file,
                   "File whose first line is the token that requests must bear");
  verb->add_option("--memory", options->memory_mib, "MiB that loaded runs may take")
      ->check(CLI::Range(std::uint64_t{1}, kMostMemoryMib))
      ->capture_default_str();
  verb->add_option("--threads", options->serve.threads, "Threads that answer requests")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  verb->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace dial9::cli
