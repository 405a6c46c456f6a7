// make_trace: writes a synthetic trace to the standard output or a file. A tool for benchmarks, the
// page's tests, and anyone who wants to see how readers do with many events.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "analysis/testing/synthetic_trace.h"

int main(int argc, char** argv) {
  dial9::analysis::testing::SyntheticOptions options;
  std::string path = "-";
  CLI::App app{"Writes a synthetic trace; the same options give the same bytes"};
  app.add_option("--polls", options.polls, "Polls in all; about 4 events each")
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Workers")
      ->check(CLI::Range(1, 250))
      ->capture_default_str();
  app.add_option("--tasks", options.tasks, "Tasks")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the random numbers")->capture_default_str();
  app.add_option("--slow-every", options.slow_every, "Every so manieth poll takes 20 ms; 0: none")
      ->capture_default_str();
  app.add_option("--out", path, "File; -: the standard output")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::FILE* const file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    std::perror(path.c_str());
    return 3;
  }
  bool is_written = true;
  const auto counts =
      dial9::analysis::testing::write_synthetic(options, [&](std::span<const std::uint8_t> bytes) {
        is_written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
        return is_written;
      });
  is_written = std::fflush(file) == 0 && is_written;
  if (!is_written) {
    std::perror(path.c_str());
    return 3;
  }
  std::fprintf(stderr, "%llu events, %llu bytes\n", static_cast<unsigned long long>(counts.events),
               static_cast<unsigned long long>(counts.bytes));
  return 0;
}
