// See worker_messages.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/worker_messages.h"

#include <algorithm>
#include <utility>

namespace dial9::symbolize {
namespace {

template <class T>
WorkerAnswer<T> senseless() {
  return {false, make_error(ErrorCode::kIo,
                            "the answer of the process that does it makes no "
                            "sense")};
}

// `read` takes what follows an answer that is no error.
template <class T, class Read>
WorkerAnswer<T> read_answer(std::span<const std::uint8_t> bytes, Read read) {
  ByteReader answer(bytes);
  const std::uint32_t failed = answer.u32();
  if (failed > static_cast<std::uint32_t>(ErrorCode::kCancelled) + 1) return senseless<T>();
  if (failed != 0) {
    const std::string message = answer.text();
    if (!answer.is_whole() || !answer.is_at_end()) return senseless<T>();
    return {true, make_error(static_cast<ErrorCode>(failed - 1), message)};
  }
  Result<T> value = read(answer);
  if (!answer.is_whole() || !answer.is_at_end()) return senseless<T>();
  return {true, std::move(value)};
}

}  // namespace

Bytes open_question(const std::string& path, const std::string& build_id) {
  ByteWriter question;
  question.u32(kOpenQuestion);
  question.text(path);
  question.text(build_id);
  return question.bytes();
}

Bytes frames_question(std::uint32_t file, std::span<const std::uint64_t> addresses) {
  ByteWriter question;
  question.u32(kFramesQuestion);
  question.u32(file);
  question.u32(static_cast<std::uint32_t>(addresses.size()));
  for (const std::uint64_t address : addresses) question.u64(address);
  return question.bytes();
}

void write_error(ByteWriter& answer, const Error& error) {
  answer.u32(static_cast<std::uint32_t>(error.code) + 1);
  answer.text(error.message);
}

WorkerAnswer<std::uint32_t> read_open_answer(std::span<const std::uint8_t> bytes) {
  return read_answer<std::uint32_t>(bytes, [](ByteReader& answer) { return answer.u32(); });
}

WorkerAnswer<FrameTable> read_frames_answer(std::span<const std::uint8_t> bytes,
                                            std::span<const std::uint64_t> asked) {
  return read_answer<FrameTable>(bytes, [&](ByteReader& answer) {
    FrameTable table = FrameTable::read(answer, asked.size());
    const auto first = asked.first(std::min(asked.size(), table.size()));
    const bool is_of_them =
        !first.empty() && std::all_of(first.begin(), first.end(), [&](std::uint64_t address) {
          return table.contains(address);
        });
    if (!is_of_them) answer.fail();
    return table;
  });
}

WorkerAnswer<std::string> read_fetch_answer(std::span<const std::uint8_t> bytes) {
  return read_answer<std::string>(bytes, [](ByteReader& answer) { return answer.text(); });
}

}  // namespace dial9::symbolize
