// Heap samples: which call sites, tasks, spans and labels allocate how much, and what of it lives
// still. Strongest property: nobody who doesn't link it has a trace of it; a service that does pays
// a countdown at each allocation and a look at one byte at each free, whether it samples or not.
//
// Link dial9::heap (it defines malloc and its family, operator new and delete, and passes them on
// to the C library or to the allocator that comes after it), or preload libdial9_heap.so.
// Spec: docs/spec/heap_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dial9/label.h"
#include "dial9/recorder.h"

namespace dial9 {

struct HeapSampleOptions {
  // Bytes allocated between two samples, on average (the gaps are random, so that every pattern of
  // sizes is met in proportion), 1 to 2^40. 1: every allocation is a sample.
  std::uint64_t sample_rate_bytes = 512 * 1024;
  // Also records when a sampled allocation is freed, so that the live heap is known.
  bool tracks_live = true;
};

// Samples the allocations of all threads while a recorder records, each with its stack, task, span
// and label. Refused if it was called before; where a sanitizer has the allocator (its name is in
// the message); where the kernel is older than 4.14. Any thread, not in a signal handler. Memory:
// 4 MiB for samples on their way and 6 MiB for the live ones (147,456 at a time), as far as they
// were used. What finds no room is counted, not waited for. In the child of a fork it is silent
// until Recorder::restart_in_child(). Cost: at most 2 ns over a malloc and its free, under 1 us a
// sample (bench/heap).
Status add_heap_samples(const HeapSampleOptions& options = {}) noexcept;

// After return allocations are only counted down. What was live is forgotten. False: there was
// nothing to remove.
bool remove_heap_samples() noexcept;

// Counts begin at zero with each add_heap_samples() that finds sampling off.
struct HeapSampleStatus {
  bool is_sampling = false;             // now
  std::string message;                  // why not, or what is less than was asked for; else empty
  std::uint64_t sample_rate_bytes = 0;  // 0: off
  std::uint64_t samples = 0;            // allocations that were recorded
  std::uint64_t frees = 0;              // frees of such that were recorded
  std::uint64_t lost_samples = 0;       // for which there was no room, or no way at that moment
  std::uint64_t lost_frees = 0;         // that nobody recorded: what they freed seems alive
  std::uint64_t untracked = 0;          // of `samples`, those whose free won't be seen
  std::uint64_t live_samples = 0;       // now
  std::string allocator;                // whom allocations are passed on to: the file's path
  // Now: sample_rate_bytes, or more, to keep within the recorder's budget. Each sample says its
  // own.
  std::uint64_t current_rate_bytes = 0;  // 0: off
};
HeapSampleStatus heap_sample_status() noexcept;

}  // namespace dial9
