// See module_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/module_table.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "dial9/internal/clock.h"
#include "dial9/internal/thread_buffer.h"
#include "unwind/loader_probe.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kLookNs = 100'000'000;

class Loader final : public ModuleReader {
 public:
  bool can_read() override { return unwind::does_loader_answer(); }
  LoadCounts counts() override { return load_counts(); }
  LoadedModules modules() override { return loaded_modules(); }
  std::uint64_t now_ns() override { return internal::now_ns(); }
};

}  // namespace

bool require_module_table() noexcept {
  // Acquire and release: the table is whole before another thread finds it added.
  static std::atomic<int> added{0};  // 1: by somebody just now; 2: it is
  int none = 0;
  if (!added.compare_exchange_strong(none, 1, std::memory_order_acquire)) return true;
  try {
    static ModuleTable* const table = new ModuleTable(*new Loader);
    if (add_stream_source(table)) {
      added.store(2, std::memory_order_release);
      return true;
    }
  } catch (const std::bad_alloc&) {
    // The next who asks tries again.
  }
  added.store(0, std::memory_order_release);
  return false;
}

ModuleTable::~ModuleTable() {
  if (state_ != nullptr && state_->pid == ::getpid()) delete state_;
}

ModuleTable::State& ModuleTable::state() {
  const pid_t self = ::getpid();
  if (state_ == nullptr || state_->pid != self) {
    state_ = new State;  // the parent's stays
    state_->pid = self;
  }
  return *state_;
}

// Times are taken on the safe side: what held did so before the counts were read, and what is new
// holds once all of it is read.
void ModuleTable::look(State& state) {
  const std::uint64_t before_ns = reader_.now_ns();
  if (state.is_known && reader_.counts() == state.now.counts) {
    state.held_ns = before_ns;
    return;
  }
  LoadedModules loaded = reader_.modules();
  const bool only_added = loaded.counts.unloads == state.now.counts.unloads;
  const std::uint64_t since_ns = reader_.now_ns();
  state.times = {state.times.epoch + 1, since_ns, since_ns, state.is_known ? state.held_ns : 0,
                 only_added};
  state.now = std::move(loaded);
  state.held_ns = since_ns;
  state.is_known = true;
  SourceStream stream = encode_modules(state.now.modules, state.times);
  stream.info.events = 0;  // the recorder's own, as each segment's opening has it
  if (!stream.bytes.empty()) state.fresh.push_back(std::move(stream));
}

std::uint64_t ModuleTable::attend(std::uint64_t now_ns) {
  State& own = state();
  if (now_ns >= own.next_look_ns) {
    own.next_look_ns = now_ns + kLookNs;
    if (reader_.can_read()) look(own);
  }
  return own.next_look_ns;
}

std::vector<SourceStream> ModuleTable::take() { return std::exchange(state().fresh, {}); }

// The set as of now, with what is known of the one before: a reader of this segment alone must not
// use it for earlier samples.
std::vector<std::uint8_t> ModuleTable::opening() {
  const State& own = state();
  if (!own.is_known) return {};
  ModuleSetTimes times = own.times;
  times.at_ns = own.held_ns;
  return encode_modules(own.now.modules, times).bytes;
}

}  // namespace dial9::internal
