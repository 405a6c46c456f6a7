// The kernel's view of another process's threads: state, where each waits, in which system call.
// Strongest property: what the kernel doesn't say, or doesn't let this user read, stays absent, and
// a process that ends in the middle is told from one that never was. It only reads /proc: the
// process neither runs nor stops for it. Spec: docs/spec/events_ours.md, "ThreadStateEvent".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dial9::internal {

struct KernelThread {
  std::uint32_t tid = 0;
  std::uint32_t inner_tid = 0;  // in its own pid namespace, as its events have it
  std::string name;
  char state = '?';                      // R S D T t Z X I, as in proc(5)
  std::optional<std::string> wchan;      // the kernel's function that it waits in
  std::optional<std::int64_t> syscall;   // number, of this machine's table
  std::optional<std::uint64_t> run_ns;   // since its start: on a CPU
  std::optional<std::uint64_t> wait_ns;  // and runnable without one
  std::optional<std::uint64_t> voluntary_switches;
  std::optional<std::uint64_t> involuntary_switches;
};

struct KernelProcess {
  std::uint32_t pid = 0;        // as asked for
  std::uint32_t inner_pid = 0;  // in its own pid namespace; the same if it has none
  std::uint32_t uid = 0;
  std::string name;
  std::vector<KernelThread> threads;  // by tid
};

// `proc` is "/proc" or, in tests, a directory of the same shape. Errors: kNotFound (no such
// process, or it ended while being read), kPermission (/proc is mounted with hidepid). Cost: five
// small files a thread.
Result<KernelProcess> read_kernel_process(const std::string& proc, std::uint32_t pid);

// The id of a thread of it that lives: the main thread may have ended before the others, and then
// what /proc has below the process's own id is gone (maps, root). 0: none lives.
std::uint32_t living_thread(const KernelProcess& process);

// --- The files' texts; false or nullopt: not understood.
bool parse_stat(std::string_view text, KernelThread& out);    // name, state
void parse_status(std::string_view text, KernelThread& out);  // switches, inner id
void parse_schedstat(std::string_view text, KernelThread& out);
std::optional<std::string> parse_wchan(std::string_view text);     // "0": waits nowhere, or hidden
std::optional<std::int64_t> parse_syscall(std::string_view text);  // "running", "-1 ...": absent

// "futex", "epoll_wait", ...: the calls that block; "syscall 999" for others.
std::string syscall_name(std::int64_t number);
// "running", "sleeping", "stopped", ... of a state letter; the letter where it isn't known.
std::string state_name(char state);

}  // namespace dial9::internal
