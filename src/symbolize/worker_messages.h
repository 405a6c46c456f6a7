// What is asked of the process that reads debug information or fetches debug files, and what it
// answers, as bytes. Strongest property: an answer is checked like any input: one that isn't what
// was asked for makes no sense, and its process is to be ended.
// Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "symbolize/frame_bytes.h"
#include "symbolize/frame_table.h"

namespace dial9::symbolize {

// What questions begin with.
inline constexpr std::uint32_t kOpenQuestion = 1;
inline constexpr std::uint32_t kFramesQuestion = 2;
inline constexpr std::uint32_t kFetchQuestion = 3;  // debuginfod.h

Bytes open_question(const std::string& path, const std::string& build_id);
Bytes frames_question(std::uint32_t file, std::span<const std::uint64_t> addresses);

// An answer begins with 0, or with an error.
void write_error(ByteWriter& answer, const Error& error);

template <class T>
struct WorkerAnswer {
  bool makes_sense;
  Result<T> value;  // or what the process says went wrong
};
// The number of the file.
WorkerAnswer<std::uint32_t> read_open_answer(std::span<const std::uint8_t> bytes);
// Of the first of the addresses that were asked for, at least one: those behind a bound are to be
// asked for again. `asked` has each once, and one at least.
WorkerAnswer<FrameTable> read_frames_answer(std::span<const std::uint8_t> bytes,
                                            std::span<const std::uint64_t> asked);
// The path of the file.
WorkerAnswer<std::string> read_fetch_answer(std::span<const std::uint8_t> bytes);

}  // namespace dial9::symbolize
