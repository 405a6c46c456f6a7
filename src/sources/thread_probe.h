// What the quiet wall sampler asks of the system about this process's threads. Strongest property:
// no thread is stopped, signalled or woken, and nothing that an answer is about can block or fault
// the one who asks: files of /proc, and memory that the kernel copies.
// Spec: docs/spec/off_cpu_samples.md, "A look".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/sched_files.h"
#include "recorder/thread_words.h"
#include "sources/perf_event.h"
#include "sources/socket_health.h"
#include "sources/switch_account.h"
#include "sources/switch_stacks.h"

namespace dial9::internal {

// What there is of switches, of all threads that were followed.
struct SwitchCounts {
  std::uint32_t threads = 0;  // followed now
  std::uint32_t unfollowed = 0;
  std::uint64_t lost = 0;  // so far
  std::uint64_t stacks = 0;
  std::uint64_t stacks_lost = 0;
};

// A thread that was found blocked, and that didn't run while all of this was read.
struct BlockedThread {
  std::string_view call;
  std::string_view cause;
  std::optional<std::uint64_t> fd;
  std::optional<std::uint64_t> object;
  std::string peer;
  std::optional<std::uint64_t> socket;  // the cookie of the TCP connection that it waits for
  ForeignContext context;
  std::uint64_t at_ns = 0;            // it was blocked at this moment
  std::vector<std::uint64_t> frames;  // leaf first; empty: the stack can't be read
  std::string_view unwound_by;
  bool is_truncated = false;
  bool has_guessed_fp = false;
};

enum class Look : std::uint8_t {
  kBlocked,
  kRunning,     // or waiting for a CPU
  kMoved,       // it ran while it was looked at
  kUnreadable,  // its call can't be read
};

class ThreadProbe {
 public:
  virtual ~ThreadProbe() = default;
  virtual std::uint64_t now_ns() = 0;
  // CPU time that the calling thread has used.
  virtual std::uint64_t cpu_ns() = 0;
  // The process's threads without the calling one, ascending. False: can't be listed.
  virtual bool list(std::vector<std::uint32_t>* tids) = 0;
  // How many threads the process has, the calling one among them, without listing them. Nothing:
  // not known, or a list does more than list.
  virtual std::optional<std::uint64_t> count() { return std::nullopt; }
  // Nothing: it ended, or its account can't be read.
  virtual std::optional<SchedReading> account(std::uint32_t tid) = 0;
  // The thread whose account was asked for last, in vain, ended: who has its id from now on is
  // another one, whose account isn't read before forget(). False: not known.
  virtual bool has_ended() const { return false; }
  // CPU time that the thread was charged for, without a file. Unchanged: it hasn't run, unless for
  // less than the kernel charges (time of interrupts and of the hypervisor is taken off). Nothing:
  // it ended, or its clock can't be read.
  virtual std::optional<std::uint64_t> charged_ns(std::uint32_t /*tid*/) { return std::nullopt; }
  // Of a thread whose account is `reading`. Fills `thread` for kBlocked.
  virtual Look look(std::uint32_t tid, const SchedReading& reading, BlockedThread* thread) = 0;
  // Of the connection that `thread` waits for, which hasn't run since. None: it is that no more, or
  // the thread moved.
  virtual std::optional<SocketHealth> socket_health(std::uint32_t /*tid*/,
                                                    const SchedReading& /*reading*/,
                                                    const BlockedThread& /*thread*/) {
    return std::nullopt;
  }
  virtual std::string name(std::uint32_t tid) = 0;
  // It ended, or nothing is known of it: what is kept for it goes.
  virtual void forget(std::uint32_t tid) = 0;
  // The thread's switches since the last call, appended by time, and the stacks of those off the
  // CPU by number, where they are taken. False: they aren't followed.
  virtual bool switches(std::uint32_t /*tid*/, std::vector<ThreadSwitch>* /*to*/,
                        std::vector<SwitchStack>* /*stacks*/) {
    return false;
  }
  virtual SwitchCounts switch_counts() const { return {}; }
  // What can't be read of which thread and why, with what is done instead; empty: nothing.
  virtual std::string trouble() const = 0;
};

// Of this process, as its thread that calls, with switches if there is a plan, and their stacks if
// there is one for those. Null: the platform isn't supported.
std::unique_ptr<ThreadProbe> make_thread_probe(const PerfPlan* switches = nullptr,
                                               const PerfPlan* stacks = nullptr);

// The descriptors that all probes of the process keep: at most kMostKeptFiles, and a 32nd of what
// RLIMIT_NOFILE allows (by `soft_limit`).
inline constexpr std::uint32_t kMostKeptFiles = 64;
std::uint32_t kept_file_room(std::uint64_t soft_limit) noexcept;
std::uint32_t kept_files() noexcept;

}  // namespace dial9::internal
