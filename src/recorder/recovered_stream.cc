// See recovered_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/recovered_stream.h"

#include <algorithm>
#include <string_view>

#include "format/encoder.h"
#include "format/value.h"
#include "recorder/loss_events.h"
#include "recorder/shed_rate.h"

namespace dial9::internal {
namespace {

// A RecorderLossEvent of so many: nobody knows how many.
constexpr std::uint64_t kUnknownCount = 0;

void put_losses(format::Encoder& out, const std::vector<ArenaLoss>& lost,
                const std::vector<UnknownLoss>& unknown, std::uint64_t pair_ns) {
  put_loss_schema(out);
  const auto put = [&](std::string_view cause, std::uint64_t count, std::uint64_t first_ns,
                       std::uint64_t last_ns) {
    put_loss(out, last_ns, cause, count, first_ns, last_ns);
  };
  for (const ArenaLoss& loss : lost) {
    if (loss.count <= loss.told) continue;
    // Where the time isn't known: between the last pair of clocks and the same, as a point.
    const std::uint64_t first = loss.first_ns != 0 ? loss.first_ns : pair_ns;
    put(loss.cause, loss.count - loss.told, first, std::max(first, loss.last_ns));
  }
  for (const UnknownLoss& loss : unknown) {
    const std::uint64_t first = loss.first_ns != 0 ? loss.first_ns : pair_ns;
    put(loss.cause, kUnknownCount, first, std::max(first, loss.last_ns));
  }
}

RunFacts facts_of(const RecoveredHead& head) {
  RunFactsReader prologue;
  if (!head.prologue.empty()) {
    format::Decoder decoder(prologue);
    (void)decoder.feed(head.prologue);  // it was checked; what can't be read is left out
  }
  RunFacts known = std::move(prologue.facts);
  if (known.pair_ns == 0) {
    known.pair_ns = head.of_segments.pair_ns;
    known.pair_realtime_ns = head.of_segments.pair_realtime_ns;
  }
  if (known.pair_ns == 0) {
    known.pair_ns = head.identity.started_ns;
    known.pair_realtime_ns = head.identity.started_realtime_ns;
  }
  if (known.entries.empty()) known.entries = head.of_segments.entries;
  if (known.entries.empty()) known.entries = {{"boot_id", head.identity.boot_id}};
  std::erase_if(known.entries, [](const auto& entry) {
    return entry.first == "segment.sealed_clean" || entry.first == "segment.index" ||
           entry.first == "dial9.recovered";
  });
  return known;
}

std::string why(const RecoveredHead& head) {
  const std::string who =
      head.identity.pid == 0 ? "the process" : "process " + std::to_string(head.identity.pid);
  return who + " ended without stopping its recorder; this is what its thread buffers held" +
         (head.identity.pid == 0 ? ": they can't be read" : "");
}

}  // namespace

bool RunFactsReader::on_event(const format::Event& event) {
  facts.last_ns = std::max(facts.last_ns, event.timestamp_ns);
  if (event.schema.name == "ClockSyncEvent" && event.values.size() == 1) {
    facts.pair_ns = event.timestamp_ns;
    facts.pair_realtime_ns = event.values[0].bits;
  }
  if (event.schema.name == "SegmentMetadataEvent" && event.values.size() == 1) {
    facts.entries.clear();
    for (format::ElementCursor at(event.values[0]); at.next();) {
      facts.entries.emplace_back(at.key().text(), at.value().text());
    }
  }
  return true;
}

std::vector<std::uint8_t> recovered_head(const RecoveredHead& head) {
  RunFacts known = facts_of(head);
  known.entries.emplace_back("segment.index", std::to_string(head.index));
  known.entries.emplace_back("segment.sealed_clean", "false");
  known.entries.emplace_back("dial9.recovered", why(head));
  format::Encoder out;
  using format::FieldType;
  constexpr std::uint16_t kClockSync = 1;
  constexpr std::uint16_t kMetadata = 2;
  out.schema(kClockSync, "ClockSyncEvent", true, {{"realtime_ns", FieldType::kVarint}});
  out.schema(kMetadata, "SegmentMetadataEvent", true, {{"entries", FieldType::kStringMap}});
  if (known.pair_ns != 0) {
    out.begin(kClockSync, known.pair_ns);
    out.varint(known.pair_realtime_ns);
  }
  const std::vector<std::pair<std::string_view, std::string_view>> views(known.entries.begin(),
                                                                         known.entries.end());
  out.begin(kMetadata, known.pair_ns);
  out.string_map(views);
  put_losses(out, head.lost, {}, known.pair_ns);
  constexpr std::uint16_t kShed = 4;
  put_rates(out, kShed, rates_of(head.raises));
  return out.take();
}

std::vector<std::uint8_t> damage_report(const RecoveredHead& head) {
  format::Encoder out;
  ArenaLoss damage;
  damage.cause = "damaged";
  damage.count = head.damaged_events;
  put_losses(out, {damage}, head.unknown, facts_of(head).pair_ns);
  return out.take();
}

}  // namespace dial9::internal
