// See journal.h. Release stores throughout: they cost nothing here, and a reader of the living
// mapping (arena_reader.h, with acquire loads or by system calls) sees them in this order too.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/journal.h"

#include <cstring>

namespace dial9::internal {
namespace {

void put(std::uint64_t& to, std::uint64_t value) { __atomic_store_n(&to, value, __ATOMIC_RELEASE); }

}  // namespace

std::uint32_t check_bytes(std::span<const std::uint8_t> bytes) {
  std::uint32_t hash = 2'166'136'261;  // FNV-1a: tells a torn copy, not an attacker
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 16'777'619;
  return hash;
}

void Journal::begin_segment(std::uint64_t index, std::uint64_t base) {
  JournalSegment& segment = page_->segments[index % 2];
  put(segment.number, 0);
  put(segment.base, base);
  put(segment.end, kOpenEnd);
  put(segment.number, index + 1);
}

void Journal::confirm(std::uint64_t position) { put(page_->confirmed, position); }

void Journal::end_segment(std::uint64_t index, std::uint64_t end) {
  put(page_->segments[index % 2].end, end);
}

void Journal::stage_told(LossCause cause, std::uint64_t total, std::uint64_t position,
                         std::uint64_t first_ns, std::uint64_t last_ns) {
  JournalTold& told = page_->told[static_cast<std::size_t>(cause)];
  put(told.staged, total);
  put(told.first_ns, first_ns);
  put(told.last_ns, last_ns);
  put(told.staged_position, position);
}

void Journal::settle_told() {
  for (JournalTold& told : page_->told) {
    if (told.staged_position == 0 || told.staged_position > page_->confirmed) continue;
    put(told.told, told.staged);
    put(told.staged_position, 0);
  }
}

void Journal::untell(LossCause cause, std::uint64_t total) {
  JournalTold& told = page_->told[static_cast<std::size_t>(cause)];
  put(told.staged_position, 0);
  put(told.told, total);
}

void Journal::begin_loss(LossCause cause, std::uint64_t target, std::uint64_t position) {
  put(page_->loss.target, target);
  put(page_->loss.cause, static_cast<std::uint64_t>(cause));
  put(page_->loss.position, position);
}

void Journal::end_loss() { put(page_->loss.position, 0); }

void Journal::remember_prologue(std::span<const std::uint8_t> stream) {
  const std::uint64_t next = page_->prologue + 1;
  auto* slots = reinterpret_cast<JournalPrologue*>(reinterpret_cast<std::uint8_t*>(page_) + 4096);
  JournalPrologue& slot = slots[next % 2];
  if (stream.size() > sizeof slot.bytes) return;
  slot.size = static_cast<std::uint32_t>(stream.size());
  slot.check = check_bytes(stream);
  std::memcpy(slot.bytes, stream.data(), stream.size());
  put(page_->prologue, next);
}

}  // namespace dial9::internal
