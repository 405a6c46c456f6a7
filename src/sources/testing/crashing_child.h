// Tests of crashes: a child process that records, crashes, and is read back. Strongest property:
// the child's signals are as at the start of a process (no sanitizer's, no test runner's), and its
// recorder has no thread, so that all it recorded lies in its arena file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "recorder/test_support.h"

namespace dial9::internal::testing {

struct ChildOptions {
  // Runs before the crash handler is installed: what the host had set up already.
  std::function<void()> prepare = {};
  // Runs at last; a return ends the child with exit code 0.
  std::function<void()> run = {};
  std::uint64_t arena_bytes = std::uint64_t{1} << 20;
  bool installs_handler = true;
};

// A process's end, and what its arena holds.
struct Ended {
  int status = 0;
  std::vector<Trace> chunks;

  int signal() const { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
  std::uint64_t count(const std::string& event) const;
  std::vector<std::uint64_t> numbers(const std::string& event, const std::string& field) const;
  // Of the only event of that type; 0 and a failed test else.
  std::uint64_t number(const std::string& event, const std::string& field) const;
  std::vector<std::uint64_t> callchain() const;  // of the only CrashEvent
};

Ended run_child(const ChildOptions& options);
inline Ended crash(std::function<void()> run) { return run_child({{}, std::move(run)}); }

// What lies in the arena file of the run under `path`.
std::vector<Trace> read_arena(const std::string& path);

// A page that nobody may touch, and ways to die of it. The functions are never inlined: their
// addresses are looked for in stacks.
void* forbidden_page();
[[gnu::noinline]] void touch(void* address);
[[gnu::noinline]] void call_touch(void* address);
// Is there a return address within the first bytes of `function`?
bool passes(const std::vector<std::uint64_t>& frames, void (*function)(void*));
// Recurses until the stack ends.
[[gnu::noinline]] int overflow_stack(int depth);

// Installs a handler for the rest of the process's life.
void handle(int signal, void (*function)(int, siginfo_t*, void*), int flags = 0,
            std::initializer_list<int> mask = {});

}  // namespace dial9::internal::testing
