// Traces that others wrote decode to their last byte, with exactly the known number of events: what
// the public format promises. The files lie outside the repository; without them the tests skip.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "format/decoder.h"
#include "format/gunzip.h"
#include "format/value.h"

namespace dial9::format {
namespace {

struct KnownTrace {
  const char* file;
  std::uint64_t events;
};

constexpr KnownTrace kKnownTraces[] = {
    {"demo-trace.2026-06-22.69957458.bin", 516950}, {"block_in_place.2026-05-21.93366247.bin", 909},
    {"demo-trace.2026-03-19.1cbc9028.bin", 135413}, {"demo-trace.2026-04-16.403fe612.bin", 145406},
    {"demo-trace.2026-05-15.95d621b4.bin", 210639},
};

std::string path_of(const KnownTrace& known) {
  const char* const shared = std::getenv("DIAL9_SHARED");
  const std::string root = shared != nullptr ? shared : DIAL9_SOURCE_DIR "/../shared";
  return root + "/traces/" + known.file;
}

std::vector<std::uint8_t> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Some copies of the one plain file had a host name of 9 bytes masked by this longer text, without
// the lengths in front being changed, which no decoder can read. Puts 9 bytes back in each place.
// A copy that isn't masked stays as it is.
std::vector<std::uint8_t> undo_masking(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view mask = "the Rust registry";
  constexpr std::string_view nine_bytes = "host name";
  std::vector<std::uint8_t> repaired;
  repaired.reserve(bytes.size());
  auto rest = bytes.begin();
  for (;;) {
    const auto found = std::search(rest, bytes.end(), mask.begin(), mask.end());
    repaired.insert(repaired.end(), rest, found);
    if (found == bytes.end()) {
      return repaired;
    }
    repaired.insert(repaired.end(), nine_bytes.begin(), nine_bytes.end());
    rest = found + static_cast<std::ptrdiff_t>(mask.size());
  }
}

// Counts, and checks what every event promises: values in schema order, stacks defined, strings
// defined by the end of their stream, containers that walk to their end.
class Checker final : public Visitor {
 public:
  Decoder* decoder = nullptr;
  std::uint64_t events = 0;
  std::uint64_t broken = 0;
  std::uint64_t unresolved = 0;
  std::uint64_t inflated_bytes = 0;

  void on_stream_start(std::uint64_t) override { resolve(); }
  void on_end() override { resolve(); }
  bool on_event(const Event& event) override {
    ++events;
    broken += event.values.size() != event.schema.fields.size() ? 1 : 0;
    for (std::size_t i = 0; i < event.values.size(); ++i) {
      const Value& value = event.values[i];
      broken += value.type != event.schema.fields[i].type ? 1 : 0;
      if (value.type == FieldType::kPooledString && value.is_present) {
        string_ids_.insert(static_cast<std::uint32_t>(value.bits));
      } else if (value.type == FieldType::kPooledStackFrames && value.is_present) {
        broken += decoder->stack(static_cast<std::uint32_t>(value.bits)) ? 0 : 1;
      } else if (is_container(value.type)) {
        ElementCursor cursor(value);
        while (cursor.next()) {
        }
        broken += cursor.is_ok() && cursor.remaining() == 0 ? 0 : 1;
      }
    }
    return true;
  }

 private:
  void resolve() {
    for (const std::uint32_t id : string_ids_) {
      unresolved += decoder->string(id) ? 0 : 1;
    }
    string_ids_.clear();
  }
  std::set<std::uint32_t> string_ids_;
};

class KnownTraces : public testing::TestWithParam<KnownTrace> {};

TEST_P(KnownTraces, DecodeToTheLastByteWithTheKnownCount) {
  const std::vector<std::uint8_t> bytes = undo_masking(read_all(path_of(GetParam())));
  if (bytes.empty()) {
    GTEST_SKIP() << "no " << path_of(GetParam()) << "; set DIAL9_SHARED to where it lies";
  }
  Checker checker;
  Decoder decoder(checker);
  checker.decoder = &decoder;
  Gunzip gunzip([&](std::span<const std::uint8_t> inflated) {
    checker.inflated_bytes += inflated.size();
    return decoder.feed(inflated);
  });
  const Result<void> fed = gunzip.feed(bytes);
  ASSERT_TRUE(fed) << fed.error().message;
  const Result<void> unzipped = gunzip.finish();
  ASSERT_TRUE(unzipped) << unzipped.error().message;
  const Result<void> finished = decoder.finish();
  ASSERT_TRUE(finished) << finished.error().message;

  EXPECT_EQ(checker.events, GetParam().events);
  EXPECT_EQ(decoder.stats().events, GetParam().events);
  EXPECT_EQ(decoder.stats().bytes_consumed, checker.inflated_bytes);
  EXPECT_EQ(checker.broken, 0u);
  EXPECT_EQ(checker.unresolved, 0u);
}

// "demo_trace_2026_06_22", of a file's name.
std::string test_name(const ::testing::TestParamInfo<KnownTrace>& info) {
  std::string name(info.param.file);
  name.resize(name.find('.', name.find("2026")));
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Compat, KnownTraces, testing::ValuesIn(kKnownTraces), test_name);

}  // namespace
}  // namespace dial9::format
