// zlib's inflate, member after member, with offsets counted over the whole input. See gunzip.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace dial9::format {
namespace {

constexpr std::array<std::uint8_t, 2> kGzipMagic = {0x1f, 0x8b};
constexpr std::size_t kOutputBytes = 128 * 1024;
constexpr int kGzipOnly = 16 + MAX_WBITS;
// For what inflate takes: its window of 32 KiB and its state of 7 KiB, with room for other makes.
constexpr std::size_t kInflateBytes = 64 * 1024;
constexpr const char* kTooLittle = "this zlib wants more memory than is set aside for it";

}  // namespace

struct Gunzip::State {
  enum class Mode : std::uint8_t { kSniffing, kPlain, kInMember, kBehindMember };

  explicit State(Sink the_sink) : sink(std::move(the_sink)) {}
  ~State() {
    if (is_inflate_open) {
      inflateEnd(&stream);
    }
  }

  Sink sink;
  Mode mode = Mode::kSniffing;
  std::uint64_t offset = 0;         // of the next input byte
  std::uint64_t member_offset = 0;  // where the current member starts
  bool has_magic_start = false;     // the first magic byte came alone and is held back
  bool is_inflate_open = false;
  z_stream stream{};
  std::unique_ptr<std::uint8_t[]> output;
  // inflate's own: zlib takes its window late, and would end the input there where malloc fails.
  std::unique_ptr<std::byte[]> memory;
  std::size_t memory_used = 0;
  Result<void> outcome;

  static voidpf give_memory(voidpf state, uInt items, uInt item_bytes);

  Result<void> sniff(std::span<const std::uint8_t>& bytes);
  Result<void> start_member();
  Result<void> inflate_some(std::span<const std::uint8_t>& bytes);
  Result<void> skip_to_member(std::span<const std::uint8_t>& bytes);
  Result<void> step(std::span<const std::uint8_t>& bytes);
  void take(std::span<const std::uint8_t>& bytes, std::size_t count) {
    bytes = bytes.subspan(count);
    offset += count;
  }
};

// Null: there is no more. Nothing comes back before the end of the input.
voidpf Gunzip::State::give_memory(voidpf opaque, uInt items, uInt item_bytes) {
  constexpr std::size_t kAlign = alignof(std::max_align_t);
  State& state = *static_cast<State*>(opaque);
  const std::uint64_t bytes = (std::uint64_t{items} * item_bytes + kAlign - 1) / kAlign * kAlign;
  if (bytes > kInflateBytes - state.memory_used) {
    return nullptr;
  }
  std::byte* const given = state.memory.get() + state.memory_used;
  state.memory_used += static_cast<std::size_t>(bytes);
  return given;
}

// Decides by the first two bytes what the input is.
Result<void> Gunzip::State::sniff(std::span<const std::uint8_t>& bytes) {
  if (!has_magic_start) {
    if (bytes[0] != kGzipMagic[0]) {
      mode = Mode::kPlain;
      return {};
    }
    if (bytes.size() == 1) {
      has_magic_start = true;
      take(bytes, 1);
      return {};
    }
    if (bytes[1] != kGzipMagic[1]) {
      mode = Mode::kPlain;
      return {};
    }
    return start_member();
  }
  const bool is_gzip = bytes[0] == kGzipMagic[1];
  if (is_gzip) {
    offset = 0;
    if (Result<void> started = start_member(); !started) {
      return started;
    }
  } else {
    mode = Mode::kPlain;
  }
  // The byte that was held back goes first.
  std::span<const std::uint8_t> held(kGzipMagic.data(), 1);
  return is_gzip ? inflate_some(held) : sink(held);
}

Result<void> Gunzip::State::start_member() {
  if (!memory) {
    output = std::make_unique_for_overwrite<std::uint8_t[]>(kOutputBytes);
    memory = std::make_unique_for_overwrite<std::byte[]>(kInflateBytes);
    stream.zalloc = give_memory;
    stream.zfree = [](voidpf, voidpf) {};
    stream.opaque = this;
  }
  member_offset = offset;
  mode = Mode::kInMember;
  const int result = is_inflate_open ? inflateReset(&stream) : inflateInit2(&stream, kGzipOnly);
  if (result != Z_OK) {
    return make_error(ErrorCode::kLimit, kTooLittle, offset);
  }
  is_inflate_open = true;
  return {};
}

// Inflates what one call gives; the caller loops.
Result<void> Gunzip::State::inflate_some(std::span<const std::uint8_t>& bytes) {
  const auto fed =
      static_cast<uInt>(std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max()));
  stream.next_in = const_cast<Bytef*>(bytes.data());  // zlib doesn't write to it
  stream.avail_in = fed;
  int result = Z_OK;
  do {
    stream.next_out = output.get();
    stream.avail_out = static_cast<uInt>(kOutputBytes);
    result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t inflated = kOutputBytes - stream.avail_out;
    if (inflated > 0) {
      if (Result<void> sunk = sink({output.get(), inflated}); !sunk) {
        return sunk;
      }
    }
    if (result == Z_MEM_ERROR) {
      return make_error(ErrorCode::kLimit, kTooLittle, offset);
    }
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      const std::uint64_t at = offset + (fed - stream.avail_in);
      return make_error(ErrorCode::kCorrupt,
                        std::string("damaged gzip data (") +
                            (stream.msg != nullptr ? stream.msg : "inflate failed") + ") at byte " +
                            std::to_string(at) + " of the compressed input",
                        at);
    }
  } while (result == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0));
  take(bytes, fed - stream.avail_in);
  if (result == Z_STREAM_END) {
    mode = Mode::kBehindMember;
  }
  return {};
}

// Behind a member: zero padding, another member, or something that doesn't belong there.
Result<void> Gunzip::State::skip_to_member(std::span<const std::uint8_t>& bytes) {
  const auto other =
      std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte != 0; });
  take(bytes, static_cast<std::size_t>(other - bytes.begin()));
  if (bytes.empty()) {
    return {};
  }
  if (bytes[0] == kGzipMagic[0]) {
    return start_member();
  }
  return make_error(ErrorCode::kCorrupt,
                    "bytes that are no gzip member follow the last one at byte " +
                        std::to_string(offset) + " of the compressed input",
                    offset);
}

Result<void> Gunzip::State::step(std::span<const std::uint8_t>& bytes) {
  switch (mode) {
    case Mode::kSniffing:
      return sniff(bytes);
    case Mode::kPlain: {
      const std::span<const std::uint8_t> all = bytes;
      take(bytes, bytes.size());
      return sink(all);
    }
    case Mode::kInMember:
      return inflate_some(bytes);
    case Mode::kBehindMember:
      return skip_to_member(bytes);
  }
  return {};
}

Gunzip::Gunzip(Sink sink) : state_(std::make_unique<State>(std::move(sink))) {}
Gunzip::~Gunzip() = default;

Result<void> Gunzip::feed(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty() && state_->outcome) {
    state_->outcome = state_->step(bytes);
  }
  return state_->outcome;
}

Result<void> Gunzip::finish() {
  State& state = *state_;
  if (!state.outcome) {
    return state.outcome;
  }
  if (state.has_magic_start && state.mode == State::Mode::kSniffing) {
    state.has_magic_start = false;
    state.mode = State::Mode::kPlain;
    state.outcome = state.sink({kGzipMagic.data(), 1});
  } else if (state.mode == State::Mode::kInMember) {
    state.outcome = make_error(ErrorCode::kTruncated,
                               "the gzip member at byte " + std::to_string(state.member_offset) +
                                   " of the compressed input isn't finished after byte " +
                                   std::to_string(state.offset),
                               state.offset);
  }
  return state.outcome;
}

bool Gunzip::is_gzip() const {
  return state_->mode == State::Mode::kInMember || state_->mode == State::Mode::kBehindMember;
}

}  // namespace dial9::format
