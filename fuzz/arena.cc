// A hostile file of thread buffers: reading and recovering it ends, stays inside its bytes, and
// what is handed out decodes to exactly the events that it claims. Input: patches of a sound file
// (how many; then region, offset, length and bytes of each), then the four chunks' streams (length,
// events and bytes of each).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "check.h"
#include "format/decoder.h"
#include "recorder/arena_reader.h"
#include "recorder/recovered_stream.h"

namespace dial9::fuzz {
namespace {

using namespace dial9::internal;

constexpr std::uint32_t kChunks = 4;
constexpr std::uint32_t kSmallChunk = 2048;
constexpr std::uint32_t kSmallTables = 64;
constexpr std::uint64_t kJournalAt = 4096;
constexpr std::uint64_t kLossAt = kJournalAt + kJournalBytes;
constexpr std::uint64_t kControlAt = kLossAt + sizeof(LossStripe) * kLossStripes;
constexpr std::uint64_t kChunkAt = kControlAt + sizeof(ChunkControl) * kChunks;
constexpr std::uint64_t kTotal = kChunkAt + kSmallChunk * kChunks;

class Bytes : public ArenaBytes {
 public:
  explicit Bytes(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  bool read(std::uint64_t offset, std::span<std::uint8_t> to) const override {
    if (offset > bytes_.size() || to.size() > bytes_.size() - offset) return false;
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return true;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Takes the input from its front; zero where it has ended.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  std::uint32_t number(std::size_t bytes) {
    std::uint32_t value = 0;
    for (const std::uint8_t byte : take(bytes)) value = value << 8 | byte;
    return value;
  }
  std::span<const std::uint8_t> take(std::size_t bytes) {
    const auto out = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(out.size());
    return out;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

std::vector<std::uint8_t> sound_file() {
  std::vector<std::uint8_t> file(kTotal);
  ArenaHeader header{};
  std::memcpy(header.magic, kArenaMagic, sizeof kArenaMagic);
  header.version = kArenaVersion;
  header.chunk_bytes = kSmallChunk;
  header.chunk_count = kChunks;
  header.tables_bytes = kSmallTables;
  header.loss_causes = kLossCauses;
  header.journal_offset = kJournalAt;
  header.loss_offset = kLossAt;
  header.control_offset = kControlAt;
  header.chunk_offset = kChunkAt;
  header.total_bytes = kTotal;
  header.pid = 1;
  header.started_ns = 1'000;
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

std::vector<std::uint8_t> file_of(Input input) {
  std::vector<std::uint8_t> file = sound_file();
  const std::uint32_t count = input.number(1) % 33;
  std::vector<std::pair<std::uint64_t, std::span<const std::uint8_t>>> late;
  for (std::uint32_t i = 0; i < count; ++i) {
    constexpr std::uint64_t kRegions[] = {0, kJournalAt, kLossAt, kControlAt};
    const std::uint64_t at = kRegions[input.number(1) % 4] + input.number(2);
    late.emplace_back(at, input.take(input.number(1)));
  }
  for (std::uint32_t i = 0; i < kChunks; ++i) {
    const std::uint32_t size = input.number(2);
    ChunkControl control{};
    control.producer.state = kChunkClosed;
    control.producer.sequence = 1;
    control.producer.committed = std::uint64_t{input.number(1)} << 32 | size;
    const auto stream = input.take(std::min(size, kSmallChunk - kSmallTables));
    std::memcpy(file.data() + kControlAt + sizeof control * i, &control, sizeof control);
    std::copy(stream.begin(), stream.end(),
              file.begin() + kChunkAt + kSmallChunk * i + kSmallTables);
  }
  for (const auto& [at, bytes] : late) {
    const std::size_t room = at < file.size() ? file.size() - at : 0;
    std::copy_n(bytes.begin(), std::min(bytes.size(), room),
                file.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(at, kTotal)));
  }
  return file;
}

// Decodes all of it, or breaks the promise.
std::uint64_t events_of(std::span<const std::uint8_t> stream) {
  RunFactsReader visitor;
  format::Decoder decoder(visitor);
  check(decoder.feed(stream).has_value() && decoder.finish().has_value(),
        "what is handed out decodes");
  return decoder.stats().events;
}

void read_all(const ArenaReader& reader) {
  RecoveredHead head;
  head.identity = reader.identity();
  head.prologue = reader.prologue();
  head.lost = reader.losses();
  if (!head.prologue.empty()) events_of(head.prologue);
  (void)reader.active_segment();
  (void)reader.clock();
  (void)reader.recovery();
  std::vector<std::uint8_t> segment = recovered_head(head);
  std::uint64_t events = events_of(segment);
  ChunkView view;
  for (const std::uint32_t chunk : reader.used_chunks()) {
    const ChunkLook look = reader.read(chunk, &view);
    check(look != ChunkLook::kRecycled, "nobody recycles a dead chunk");
    if (look != ChunkLook::kRead) {
      check(view.rest_events == 0 && view.rest.empty(), "what can't be read gives no events");
      head.damaged_events += view.events_unreadable;
      continue;
    }
    check(events_of(view.stream) == view.events, "a stream has the events that it claims");
    check(view.rest.empty() || events_of(view.rest) == view.rest_events, "and so has the rest");
    check(view.rest_events + std::min(view.events_in_segment, view.events) <= view.events,
          "no event is in a segment and in the rest");
    segment.insert(segment.end(), view.rest.begin(), view.rest.end());
    events += view.rest_events;
    head.damaged_events += view.events_unreadable;
  }
  const auto tail = damage_report(head);
  segment.insert(segment.end(), tail.begin(), tail.end());
  check(events_of(segment) == events + events_of(tail), "the segment is whole");
}

}  // namespace
}  // namespace dial9::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dial9::fuzz;
  const auto reader =
      dial9::internal::ArenaReader::from(std::make_unique<Bytes>(file_of(Input(data, size))));
  if (reader) read_all(*reader);
  return 0;
}
