// Answers of the process that reads debug information are what was asked for, or make no sense.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/worker_messages.h"

#include <gtest/gtest.h>

#include <vector>

namespace dial9::symbolize {
namespace {

constexpr std::uint64_t kAsked[] = {10, 20, 30};

Bytes table_of(std::initializer_list<std::uint64_t> addresses) {
  FrameTable table;
  for (const std::uint64_t address : addresses) {
    table.add(address, std::vector<Frame>{{.name = "f"}});
  }
  ByteWriter out;
  out.u32(0);
  table.write(out);
  return out.bytes();
}

TEST(WorkerMessages, AnAnswerMayHaveTheFirstOfTheAddressesAlone) {
  for (const Bytes& bytes : {table_of({10}), table_of({20, 10}), table_of({10, 20, 30})}) {
    const auto answer = read_frames_answer(bytes, kAsked);
    EXPECT_TRUE(answer.makes_sense);
    ASSERT_TRUE(answer.value.has_value());
    EXPECT_EQ(answer.value->frames(10).at(0).name, "f");
  }
}

TEST(WorkerMessages, AnAnswerToSomethingElseMakesNoSense) {
  for (const Bytes& bytes : {table_of({}), table_of({20}), table_of({10, 30}), table_of({10, 11}),
                             table_of({10, 20, 30, 40}), Bytes{}, Bytes{0, 0, 0, 0}}) {
    const auto answer = read_frames_answer(bytes, kAsked);
    EXPECT_FALSE(answer.makes_sense);
    EXPECT_FALSE(answer.value.has_value());
  }
  Bytes longer = table_of({10});
  longer.push_back(0);
  EXPECT_FALSE(read_frames_answer(longer, kAsked).makes_sense);
}

TEST(WorkerMessages, AnErrorComesWithItsCodeAndItsReason) {
  ByteWriter out;
  write_error(out, {ErrorCode::kCorrupt, "it was replaced"});
  const auto answer = read_open_answer(out.bytes());
  EXPECT_TRUE(answer.makes_sense);
  ASSERT_FALSE(answer.value.has_value());
  EXPECT_EQ(answer.value.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(answer.value.error().message, "it was replaced");
  ByteWriter unknown;
  unknown.u32(99);
  unknown.text("");
  EXPECT_FALSE(read_open_answer(unknown.bytes()).makes_sense);
  EXPECT_FALSE(read_fetch_answer(unknown.bytes()).makes_sense);
}

TEST(WorkerMessages, AFileHasANumberAndAFetchedOneAPath) {
  ByteWriter number;
  number.u32(0);
  number.u32(5);
  EXPECT_EQ(read_open_answer(number.bytes()).value.value(), 5U);
  EXPECT_FALSE(read_fetch_answer(number.bytes()).makes_sense) << "a text that isn't there";
  ByteWriter path;
  path.u32(0);
  path.text("/a");
  EXPECT_EQ(read_fetch_answer(path.bytes()).value.value(), "/a");
}

}  // namespace
}  // namespace dial9::symbolize
