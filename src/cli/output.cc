// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace dial9::cli {
namespace {

bool is_broken = false;
bool is_lost = false;

bool fail() {
  if (!is_broken && errno != EPIPE) {
    std::fprintf(stderr, "dial9: can't write the output: %s\n", std::strerror(errno));
    is_lost = true;
  }
  is_broken = true;
  return false;
}

}  // namespace

void let_writes_fail() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool write_out(std::string_view text) {
  if (is_broken) {
    return false;
  }
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() || fail();
}

bool is_output_lost() { return is_lost; }

bool flush_out() { return !is_broken && (std::fflush(stdout) == 0 || fail()); }

}  // namespace dial9::cli
