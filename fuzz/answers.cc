// Any bytes as an answer of the process that reads debug information, which a file may have taken
// over, and as what the cache on disk holds: an answer is of what was asked for, or makes no sense;
// what is read takes a bounded multiple of the bytes, and comes back when it is written.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <vector>

#include "check.h"
#include "symbolize/frame_bytes.h"
#include "symbolize/frame_table.h"
#include "symbolize/worker_messages.h"

namespace dial9::fuzz {
namespace {

using namespace dial9::symbolize;

constexpr std::size_t kMostAddresses = 8;
constexpr std::uint64_t kFirstAddress = 0x1000;

void check_frames(const FrameTable& table, std::uint64_t address) {
  const std::vector<Frame> frames = table.frames(address);
  check(frames.size() <= kMostFramesOfAddress, "more frames than an address may have");
  for (const Frame& frame : frames) {
    check(frame.name.size() <= kMostTextBytes && frame.file.size() <= kMostTextBytes &&
              frame.at_file.size() <= kMostTextBytes,
          "a text beyond its bound");
  }
}

void check_table(const FrameTable& table, std::size_t size) {
  check(table.bytes() <= 24 * size + 4096, "far more memory than bytes");
  ByteWriter out;
  table.write(out);
  check(out.bytes().size() == table.written_bytes(), "another size than was told");
  ByteReader in(out.bytes());
  check(FrameTable::read(in, table.size()) == table && in.is_at_end(), "it doesn't come back");
}

void read_frames(std::span<const std::uint8_t> bytes, std::size_t count) {
  std::vector<std::uint64_t> asked;
  for (std::size_t i = 0; i < count; ++i) asked.push_back(kFirstAddress + i);
  const WorkerAnswer<FrameTable> answer = read_frames_answer(bytes, asked);
  if (!answer.value) return;
  check(answer.makes_sense, "a table that makes no sense");
  check(!answer.value->empty() && answer.value->size() <= count, "another number of addresses");
  for (std::size_t i = 0; i < answer.value->size(); ++i) {
    check(answer.value->contains(asked[i]), "an address that wasn't asked for");
    check_frames(*answer.value, asked[i]);
  }
  check_table(*answer.value, bytes.size());
}

}  // namespace
}  // namespace dial9::fuzz

// The first byte: how many addresses were asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dial9::fuzz;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  read_frames(bytes, 1 + data[0] % kMostAddresses);
  const auto number = read_open_answer(bytes);
  check(number.makes_sense || !number.value, "a number that makes no sense");
  const auto path = read_fetch_answer(bytes);
  check(path.makes_sense || !path.value, "a path that makes no sense");
  ByteReader cache(bytes);
  const FrameTable table = FrameTable::read(cache, size);
  check(cache.is_whole() || table.empty(), "a part of a table");
  check_table(table, size);
  return 0;
}
