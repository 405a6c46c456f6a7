// The ring that the kernel puts a perf event's records into, mapped. Strongest property: the reader
// never waits and never reads beyond what the kernel has published; where the ring is full the
// kernel drops the sample and counts it. Locked memory (RLIMIT_MEMLOCK, perf_event_mlock_kb).
// A child of a fork doesn't have the mapping: it must not touch the object.
// Spec: docs/spec/cpu_samples.md, "Perf".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dial9::internal {

class PerfRing {
 public:
  // `bytes`: a power of two of pages. Null: refused, the reason in `errno`.
  static std::unique_ptr<PerfRing> map(int fd, std::size_t bytes);
  ~PerfRing();
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;

  bool is_empty() const;
  // The oldest record, whole and aligned to 8, until pop(); empty: there is none.
  std::span<const std::byte> front();
  void pop();
  std::size_t bytes() const { return bytes_; }

 private:
  PerfRing(void* memory, std::size_t page_bytes, std::size_t bytes);
  std::uint64_t head() const;

  void* const memory_;
  const std::size_t page_bytes_;
  const std::size_t bytes_;
  std::uint64_t tail_ = 0;
  std::size_t front_bytes_ = 0;
  std::vector<std::uint64_t> whole_;  // a record that runs over the end
};

}  // namespace dial9::internal
