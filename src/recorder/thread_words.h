// What a sampler asks of a thread from outside: its task, its innermost open span, its label, and
// whether it is a parked worker. Strongest property: no word of a foreign thread is ever loaded
// plainly: the caller's copy function fetches them (the kernel copies), so a thread that ends
// meanwhile is an answer "not known". Right for a thread that didn't run while it was asked: only
// it writes its own words. Spec: docs/spec/off_cpu_samples.md, "Context".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/sample_context.h"

namespace dial9::internal {

struct ForeignContext {
  SampleContext sample;
  bool is_parked = false;  // a worker that waits for work
};

// A part of a thread's words, and where it is to be copied to.
struct ThreadWordPart {
  std::uint64_t address = 0;
  void* to = nullptr;
  std::size_t bytes = 0;
};
// Copies all of them. False: not all can be read.
using CopyWords = bool (*)(void* self, std::span<const ThreadWordPart> parts);

// The context of the thread `tid`, whose thread pointer is `base`. False: not known.
bool read_foreign_context(std::uint64_t base, std::uint32_t tid, CopyWords copy, void* self,
                          ForeignContext* context) noexcept;

// The calling thread's thread pointer.
std::uint64_t own_thread_pointer() noexcept;

}  // namespace dial9::internal
