// Continuations of partly drained chunks, cut at every event.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/stream_scanner.h"

#include <gtest/gtest.h>

#include "dial9/event.h"
#include "format/wire.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

const std::uint64_t kFrames[] = {1, 2, 3};
DIAL9_EVENT(Mixed, (std::uint64_t, number), (interned, name), (optional<callchain>, chain),
            (text, words), (optional<std::uint16_t>, maybe), (double, ratio), (bool, flag),
            (stack_frames, stack), (bytes_u64, size));
DIAL9_EVENT(Small, (std::uint8_t, number));

// Records a mixed stream; returns the chunk's bytes and where each event ends.
std::vector<std::uint8_t> record_mixed(std::vector<std::size_t>* ends) {
  SteppedRecorder recorder;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::string name = "n" + std::to_string(i % 3);
    // Steps of 10 ms, now and then backwards: some deltas need a reset frame.
    const std::uint64_t stamp = 5'000'000'000 + i * 10 * kTestMs - (i % 7 == 0 ? 100 * kTestMs : 0);
    if (i % 5 == 0) {
      record_at(Small{static_cast<std::uint8_t>(i)}, stamp);
    } else {
      Mixed mixed{i, name, {}, "some words", {}, 0.5, true, {kFrames, 3}, 1U << i % 30};
      if (i % 2 == 0) mixed.chain = callchain(kFrames, 2);
      if (i % 3 == 0) mixed.maybe = std::uint16_t{3};
      record_at(mixed, stamp);
    }
    ends->push_back(static_cast<std::uint32_t>(t_buffer.control->producer.committed));
  }
  return {t_buffer.begin, t_buffer.begin + ends->back()};
}

TEST(StreamScanner, ContinuesAChunkAtEveryEvent) {
  std::vector<std::size_t> ends;
  const std::vector<std::uint8_t> stream = record_mixed(&ends);
  const Trace whole = Trace::of(stream);
  for (const std::size_t cut : ends) {
    const std::span<const std::uint8_t> all(stream);
    StreamScanner scanner;
    ASSERT_TRUE(scanner.scan(all.subspan(format::kHeaderBytes, cut - format::kHeaderBytes)));
    std::vector<std::uint8_t> joined(stream.begin(), stream.begin() + static_cast<long>(cut));
    const auto prefix = scanner.continuation();
    joined.insert(joined.end(), prefix.begin(), prefix.end());
    joined.insert(joined.end(), stream.begin() + static_cast<long>(cut), stream.end());
    const Trace trace = Trace::of(joined);
    for (const char* event : {"Mixed", "Small"}) {
      EXPECT_EQ(trace.numbers(event, "number"), whole.numbers(event, "number")) << cut;
      EXPECT_EQ(trace.stamps(event), whole.stamps(event)) << cut;
    }
    EXPECT_EQ(trace.texts("Mixed", "name"), whole.texts("Mixed", "name")) << cut;
  }
}

TEST(StreamScanner, RefusesBytesThatEndInsideAFrame) {
  std::vector<std::size_t> ends;
  const std::vector<std::uint8_t> stream = record_mixed(&ends);
  const std::span<const std::uint8_t> frames =
      std::span<const std::uint8_t>(stream).subspan(format::kHeaderBytes);
  for (const std::size_t end : ends) {
    // An event frame takes seven bytes at least.
    for (std::size_t missing = 1; missing < 7; ++missing) {
      EXPECT_FALSE(StreamScanner().scan(frames.first(end - missing - format::kHeaderBytes)));
    }
  }
}

TEST(StreamScanner, RefusesWhatItDoesNotKnow) {
  const std::uint8_t unknown_tag[] = {0x77};
  EXPECT_FALSE(StreamScanner().scan(unknown_tag));
  const std::uint8_t event_without_schema[] = {0x02, 1, 0, 0, 0, 0};
  EXPECT_FALSE(StreamScanner().scan(event_without_schema));
  const std::uint8_t huge_length[] = {0x03, 1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  EXPECT_FALSE(StreamScanner().scan(huge_length));
}

}  // namespace
}  // namespace dial9::internal
