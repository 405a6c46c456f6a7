// See perf_ring.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/perf_ring.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace dial9::internal {
namespace {

perf_event_mmap_page& control(void* memory) { return *static_cast<perf_event_mmap_page*>(memory); }

}  // namespace

std::unique_ptr<PerfRing> PerfRing::map(int fd, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<PerfRing>(new PerfRing(memory, page, bytes));
}

PerfRing::PerfRing(void* memory, std::size_t page_bytes, std::size_t bytes)
    : memory_(memory), page_bytes_(page_bytes), bytes_(bytes) {}

PerfRing::~PerfRing() { ::munmap(memory_, page_bytes_ + bytes_); }

std::uint64_t PerfRing::head() const {
  // Acquire pairs with the kernel's barrier before it moves the head: records are whole.
  return __atomic_load_n(&control(memory_).data_head, __ATOMIC_ACQUIRE);
}

bool PerfRing::is_empty() const { return head() == tail_; }

std::span<const std::byte> PerfRing::front() {
  const std::uint64_t left = head() - tail_;
  if (left < sizeof(perf_event_header)) return {};
  const std::byte* const data = static_cast<const std::byte*>(memory_) + page_bytes_;
  const auto at = static_cast<std::size_t>(tail_ & (bytes_ - 1));
  perf_event_header header{};
  std::memcpy(&header, data + at, sizeof header);  // records are aligned: never split by the end
  if (header.size < sizeof header || header.size % 8 != 0 || header.size > left) {
    tail_ = head();  // the kernel never does that: what there is can't be told apart
    front_bytes_ = 0;
    pop();
    return {};
  }
  front_bytes_ = header.size;
  const std::size_t to_end = bytes_ - at;
  if (front_bytes_ <= to_end) return {data + at, front_bytes_};
  whole_.resize(front_bytes_ / 8);
  auto* const copy = reinterpret_cast<std::byte*>(whole_.data());
  std::memcpy(copy, data + at, to_end);
  std::memcpy(copy + to_end, data, front_bytes_ - to_end);
  return {copy, front_bytes_};
}

void PerfRing::pop() {
  tail_ += front_bytes_;
  front_bytes_ = 0;
  // Release: what was read is read before the kernel writes over it.
  __atomic_store_n(&control(memory_).data_tail, tail_, __ATOMIC_RELEASE);
}

}  // namespace dial9::internal
