// See dial9/lock_stacks.h.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/lock_stacks.h"

#include <atomic>
#include <string>

#include "recorder/no_exception.h"
#include "recorder/wait_stacks.h"
#include "sources/caller_stack.h"
#include "sources/module_table.h"

namespace dial9 {
namespace {

static_assert(internal::kWaitStackRoom == internal::kMostWaitFrames + internal::kMostOwnFrames);

constinit std::atomic<bool> g_is_on{false};

internal::WaitStack take(const void* caller, std::uint64_t* room) noexcept {
  const internal::CallerStack stack =
      internal::stack_of_caller(caller, {room, internal::kWaitStackRoom});
  return {stack.frames.data(), stack.frames.size(), stack.is_truncated};
}

Status start(const LockStackOptions& options) {
  constexpr std::uint32_t kMost = 10'000;
  if (options.most_a_second == 0 || options.most_a_second > kMost) {
    return Status::failure("lock stacks: most_a_second must be from 1 to 10000, not " +
                           std::to_string(options.most_a_second));
  }
  if (unwind::prepare() == unwind::Prepared::kNoMemory) {
    return Status::failure("lock stacks: no memory for the table of modules");
  }
  if (!internal::require_module_table()) {
    return Status::failure("lock stacks: too many sources: stacks couldn't be named later");
  }
  internal::set_wait_stacks(take, options.most_a_second);
  g_is_on = true;
  return {};
}

}  // namespace

Status add_lock_stacks(const LockStackOptions& options) noexcept {
  return internal::no_exception([&] { return start(options); }, internal::out_of_memory());
}

bool remove_lock_stacks() noexcept {
  if (!g_is_on.exchange(false)) return false;
  internal::set_wait_stacks(nullptr, 0);
  return true;
}

}  // namespace dial9
