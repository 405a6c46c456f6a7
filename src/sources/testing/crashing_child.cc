// See crashing_child.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/testing/crashing_child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "dial9/crash.h"

namespace dial9::internal::testing {
namespace {

void become_plain_process() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  const struct rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

[[noreturn]] void be_child(const std::string& directory, const ChildOptions& options) {
  become_plain_process();
  CoreSeams seams;
  seams.has_thread = false;
  seams.boot_id = "died-1";
  RecorderOptions recording = RecorderOptions::disk(directory);
  recording.arena_bytes = options.arena_bytes;
  Status status;
  const auto core = RecorderCore::start(recording, seams, &status);
  if (!status) ::_exit(101);
  if (options.prepare) options.prepare();
  if (options.installs_handler && !install_crash_handler()) ::_exit(102);
  core->step();  // what the collector's thread does all the time
  options.run();
  ::_exit(0);
}

}  // namespace

Ended run_child(const ChildOptions& options) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) be_child(dir.path(), options);
  Ended ended;
  EXPECT_EQ(::waitpid(child, &ended.status, 0), child);
  ended.chunks = read_arena(dir.path() + "/died-1");
  return ended;
}

std::vector<Trace> read_arena(const std::string& path) {
  const auto file = read_file(path + "/" + kArenaName);
  std::vector<Trace> chunks;
  ArenaHeader header;
  if (file.size() < sizeof header) return chunks;
  std::memcpy(&header, file.data(), sizeof header);
  for (std::uint32_t i = 0; i < header.chunk_count; ++i) {
    ChunkControl control;
    std::memcpy(&control, file.data() + header.control_offset + i * sizeof control, sizeof control);
    if (control.producer.state == kChunkFree) continue;
    const std::uint8_t* stream = file.data() + header.chunk_offset +
                                 std::uint64_t{header.chunk_bytes} * i + header.tables_bytes;
    const auto bytes = static_cast<std::uint32_t>(control.producer.committed);
    chunks.push_back(Trace::of(std::vector<std::uint8_t>(stream, stream + bytes)));
  }
  return chunks;
}

std::uint64_t Ended::count(const std::string& event) const {
  std::uint64_t total = 0;
  for (const Trace& chunk : chunks) total += chunk.count(event);
  return total;
}

std::vector<std::uint64_t> Ended::numbers(const std::string& event,
                                          const std::string& field) const {
  std::vector<std::uint64_t> all;
  for (const Trace& chunk : chunks) {
    const auto some = chunk.numbers(event, field);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::uint64_t Ended::number(const std::string& event, const std::string& field) const {
  const auto all = numbers(event, field);
  EXPECT_EQ(all.size(), 1U) << event;
  return all.size() == 1 ? all[0] : 0;
}

std::vector<std::uint64_t> Ended::callchain() const {
  std::vector<std::uint64_t> frames;
  EXPECT_EQ(count("CrashEvent"), 1U);
  for (const Trace& chunk : chunks) {
    for (const format::OwnedEvent& event : chunk.raw().events) {
      if (chunk.raw().schemas[event.schema].name != "CrashEvent") continue;
      frames = chunk.raw().field(event, "callchain")->frames;
    }
  }
  return frames;
}

void* forbidden_page() {
  static void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page;
}

void touch(void* address) {
  *static_cast<volatile int*>(address) = 1;
  asm volatile("" ::: "memory");
}

void call_touch(void* address) {
  touch(address);
  asm volatile("" ::: "memory");  // no tail call
}

bool passes(const std::vector<std::uint64_t>& frames, void (*function)(void*)) {
  const auto begin = std::bit_cast<std::uint64_t>(function);
  for (const std::uint64_t frame : frames) {
    if (frame >= begin && frame < begin + 512) return true;
  }
  return false;
}

int overflow_stack(int depth) {
  // Frames stay this large: ThreadSanitizer's own list of 65,536 calls must not end first.
  volatile char here[512];
  asm volatile("" : : "r"(here) : "memory");
  here[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow_stack(depth + 1) + here[0];
}

void handle(int signal, void (*function)(int, siginfo_t*, void*), int flags,
            std::initializer_list<int> mask) {
  struct sigaction action{};
  action.sa_sigaction = function;
  action.sa_flags = SA_SIGINFO | flags;
  for (const int blocked : mask) sigaddset(&action.sa_mask, blocked);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace dial9::internal::testing
