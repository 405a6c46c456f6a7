// Call stacks from anywhere, a signal handler above all: walks `.eh_frame` unwind tables with a
// row cache per address, and frame pointers where code has no tables.
//
// Async-signal-safe: takes no lock, allocates nothing, calls neither libgcc nor dl_iterate_phdr,
// uses no TLS of its own, keeps errno, and never faults: what isn't the calling thread's own mapped
// stack is copied by the kernel (process_vm_readv), which answers an error instead of a signal.
// Work is bounded by the frames asked for and by a byte budget for tables: garbage can't hang it.
// Spec: docs/spec/unwinding.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dial9::unwind {

// How frames are found.
enum class Strategy : std::uint8_t {
  kHybrid,         // unwind tables; a frame pointer step where code has none (JIT). The default.
  kTables,         // unwind tables only: stops where code has none
  kFramePointers,  // frame pointers only: fastest, but loses callers in code built without them
};

// What found the frames of one stack; it belongs into the sample, for it says how far to trust it.
enum class Method : std::uint8_t {
  kNone,          // a single frame: nothing had to be found
  kTables,        // every step by unwind tables
  kFramePointer,  // every step by frame pointers
  kMixed,         // some steps by each: a caller may be missing next to code without tables
};
// As samples' unwound_by has it.
constexpr std::string_view method_name(Method method) {
  switch (method) {
    case Method::kTables:
      return "tables";
    case Method::kFramePointer:
      return "frame_pointers";
    case Method::kMixed:
      return "mixed";
    case Method::kNone:
      break;
  }
  return "none";
}

// Why the walk ended. Everything but kEndOfStack is a truncated stack.
enum class StopReason : std::uint8_t {
  kEndOfStack,        // the outermost frame was reached: the stack is whole
  kFramesFull,        // `frames` was too short
  kNoTable,           // code without unwind table, and no plausible frame pointer
  kCorruptTable,      // a table contradicts itself or refers outside its module
  kUnsupportedRule,   // a rule needs a register that isn't known here, or has an unknown opcode
  kUnreadable,        // a stack word or a table isn't readable memory
  kImplausibleFrame,  // a frame that doesn't lie above its callee, or a return address below 4096
  kBudget,            // the byte budget for unwind tables is used up
  kNotPrepared,       // prepare() never ran: tables are unknown, and frame pointers led no further
  kUnsupported,       // this platform has no unwinder
};

struct Options {
  Strategy strategy = Strategy::kHybrid;
  // Let the kernel copy every word, even of the thread's own stack. For crash handlers, where the
  // stack may have run into a guard page. About 100 ns a frame instead of 5.
  bool distrust_stack = false;
  // Innermost frames to leave out of `frames`.
  std::uint32_t skip = 0;
};

struct Result {
  std::uint32_t count = 0;  // entries of `frames` that were written
  Method method = Method::kNone;
  StopReason stop = StopReason::kUnsupported;
  // The frame pointer wasn't known and was found by trial (StackCopy::has_fp): a stack that fits,
  // all the way to its outermost frame, but not proven.
  bool has_guessed_fp = false;

  bool truncated() const { return stop != StopReason::kEndOfStack; }
};

enum class Prepared : std::uint8_t {
  kDone,
  kBusy,  // another thread is at it, or the loader doesn't answer; walks know no more than before
  kNoMemory,
};

// Learns the loaded modules and the layout of thread stacks. Call it once before the first walk and
// again when modules came or went, at best once a second from a background thread: without a change
// it costs one dl_iterate_phdr (1-2 µs) and a read of /proc/self/maps for the main thread's stack.
// With glibc >= 2.35 a module loaded since is found all the same, only slower; with older ones its
// frames have no table until the next call.
// Any thread, never in a signal handler: it locks and allocates (about 1 byte per 8 functions).
// The first call of a process starts one or two threads for some microseconds: it asks whether the
// loader answers (loader_probe.h), and the main thread needs another to learn of its stack.
// Where another thread is in here, or memory is short, everything is left as it was.
Prepared prepare() noexcept;

// Writes the stack of the interrupted `context` to `frames`, innermost first: the interrupted
// address, then return addresses. Frames of the signal handlers in between are there as well; a
// walk passes through them. `context` must be the calling thread's (a handler's third argument).
// Threads & signals: any thread, any signal handler, any stack (alternate stacks, fibers). Uses at
// most kStackBytes of stack below its caller. Cost: about 5 ns a frame that was seen before, about
// 1-5 µs for an address seen first (bench/unwind).
Result unwind(const ucontext_t* context, std::span<std::uint64_t> frames,
              const Options& options = {}) noexcept;

// The same for the caller's own stack: the first frame is an address in this function's caller.
Result unwind_here(std::span<std::uint64_t> frames, const Options& options = {}) noexcept;

// A copied stack: `bytes` were at `address` of this process when the registers had these values.
struct StackCopy {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  // False: only pc and sp are known (/proc/self/task/T/syscall). Where a frame needs the frame
  // pointer before another one has restored it, the walk tries places that hold a return address
  // behind a call of that frame's function, and takes the first from which the outermost frame is
  // reached; without one it ends there. At most 64 walks.
  bool has_fp = true;
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;
};

// The same for a copy of a stack of this process, taken elsewhere (a perf sample, another thread's
// stack). `distrust_stack` has no meaning here: only `copy.bytes` is read.
Result unwind_copy(const StackCopy& copy, std::span<std::uint64_t> frames,
                   const Options& options = {}) noexcept;

// An upper bound of what the functions above use of their caller's stack, for sizing an alternate
// stack (add AT_MINSIGSTKSZ). Held by a test.
inline constexpr std::size_t kStackBytes = 4096;

}  // namespace dial9::unwind
