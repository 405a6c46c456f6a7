// Feeds the frame parser: whole frames straight from the caller's chunk, frames that straddle two
// chunks from a carry buffer, and every failure once, with its offset. See decoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/decoder.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "format/frame_parser.h"
#include "format/parse.h"

namespace dial9::format {
namespace {

std::string hex_byte(std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

// Of a limit, for a message: as MiB, or as bytes where it is less.
std::string size_text(std::uint64_t bytes) {
  return bytes < 1 << 20 ? std::to_string(bytes) + " bytes" : std::to_string(bytes >> 20) + " MiB";
}

// What went wrong, in words; `byte` is the offending one.
std::string describe(Parse failure, std::uint8_t byte, const DecodeLimits& limits) {
  switch (failure) {
    case Parse::kBadHeader:
      return "not a trace: it doesn't start with 'TRC' and a zero byte";
    case Parse::kBadLaterHeader:
      return "a damaged stream header";
    case Parse::kBadVersion:
      return "trace format version " + std::to_string(byte) + ", but this reader knows version " +
             std::to_string(kVersion);
    case Parse::kUnknownFrame:
      return "unknown frame " + hex_byte(byte) + " (damaged, or from a newer writer)";
    case Parse::kUnknownType:
      return "unknown field type " + hex_byte(byte) + " (damaged, or from a newer writer)";
    case Parse::kUnknownTypeId:
      return "an event whose type was not defined before it";
    case Parse::kTypeIdConflict:
      return "a type id that is defined again with different content";
    case Parse::kBadFlag:
      return "a flag that is neither 0 nor 1 but " + hex_byte(byte);
    case Parse::kBadVarint:
      return "a varint of more than 64 bits";
    case Parse::kTooDeep:
      return "lists or maps nested deeper than " + std::to_string(kMaxNesting);
    case Parse::kUndefinedStack:
      return "a reference to a stack that was not defined before it";
    case Parse::kTimeOverflow:
      return "a timestamp of more than 64 bits";
    case Parse::kFrameTooLarge:
      return "a frame of more than " + size_text(limits.frame_bytes) + ", which is not read";
    case Parse::kHoldsTooMuch:
      return "definitions that take more than " + size_text(limits.held_bytes) + " of memory";
    case Parse::kCancelled:
      return "cancelled by the reader";
    case Parse::kDone:
    case Parse::kNeedsMore:
      break;
  }
  return "unfinished frame";
}

ErrorCode code_of(Parse failure) {
  switch (failure) {
    case Parse::kBadVersion:
    case Parse::kUnknownFrame:
    case Parse::kUnknownType:
    case Parse::kTooDeep:
      return ErrorCode::kUnsupported;
    case Parse::kFrameTooLarge:
    case Parse::kHoldsTooMuch:
      return ErrorCode::kLimit;
    case Parse::kCancelled:
      return ErrorCode::kCancelled;
    case Parse::kNeedsMore:
      return ErrorCode::kTruncated;
    default:
      return ErrorCode::kCorrupt;
  }
}

}  // namespace

int Schema::find(std::string_view field_name) const {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == field_name) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::optional<std::string_view> Schema::annotation(std::size_t field_index,
                                                   std::string_view key) const {
  for (const Annotation& annotation : annotations) {
    if (annotation.field_index == field_index && annotation.key == key) {
      return annotation.value;
    }
  }
  return std::nullopt;
}

struct Decoder::State {
  State(Visitor& the_visitor, DecodeLimits limits)
      : visitor(the_visitor), parser(the_visitor, limits) {}

  Visitor& visitor;
  FrameParser parser;
  // The bytes of an unfinished frame, and how many of it there must be before another try.
  std::vector<std::uint8_t> carry;
  std::uint64_t wanted = 0;
  std::uint64_t consumed = 0;
  bool is_ended = false;
  Result<void> outcome;  // once ended

  Result<void> feed(std::span<const std::uint8_t> bytes);
  // The carried frame lacks so many bytes at least. One byte over the limit is enough to refuse it.
  void want(std::uint64_t missing) {
    wanted = std::min(carry.size() + missing, parser.limits().frame_bytes + 1);
  }
  // Completes the carried frame from `bytes`; returns how many of them it took. Where the frame
  // isn't complete yet, that is all of them.
  std::size_t complete_carried(std::span<const std::uint8_t> bytes);
  Result<void> end(Result<void> with);
  Result<void> fail(Parse failure, const Input& in, const std::uint8_t* frame);
  Error error(ErrorCode code, std::string what, std::uint64_t offset);
};

Result<void> Decoder::State::end(Result<void> with) {
  is_ended = true;
  outcome = std::move(with);
  visitor.on_end();
  return outcome;
}

Error Decoder::State::error(ErrorCode code, std::string what, std::uint64_t offset) {
  what += " at byte " + std::to_string(offset) + "; kept " + std::to_string(parser.events()) +
          " events from the " + std::to_string(consumed) + " bytes before";
  return Error{code, std::move(what), offset};
}

// Ends the decode; `frame` is where the frame starts whose parse failed.
Result<void> Decoder::State::fail(Parse failure, const Input& in, const std::uint8_t* frame) {
  const auto into_frame = static_cast<std::uint64_t>(in.culprit - frame);
  if (failure == Parse::kCancelled) {
    consumed += into_frame;  // the event that said so was delivered
    return end(
        std::unexpected(error(code_of(failure), describe(failure, 0, parser.limits()), consumed)));
  }
  return end(std::unexpected(error(
      code_of(failure), describe(failure, *in.culprit, parser.limits()), consumed + into_frame)));
}

std::size_t Decoder::State::complete_carried(std::span<const std::uint8_t> bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    // Double at least, so that a long frame in small parts is parsed a few times only.
    const std::uint64_t step =
        std::max<std::uint64_t>(wanted > carry.size() ? wanted - carry.size() : 1, carry.size());
    const std::size_t grown = std::min<std::uint64_t>(step, bytes.size() - taken);
    carry.insert(carry.end(), bytes.begin() + static_cast<std::ptrdiff_t>(taken),
                 bytes.begin() + static_cast<std::ptrdiff_t>(taken + grown));
    taken += grown;
    if (carry.size() < wanted) {
      continue;
    }
    Input in{carry.data(), carry.data() + carry.size()};
    const Parse result = parser.parse(in, consumed);
    if (result == Parse::kNeedsMore) {
      want(in.missing);
      continue;
    }
    if (result != Parse::kDone) {
      (void)fail(result, in, carry.data());
      return taken;
    }
    const auto frame_bytes = static_cast<std::size_t>(in.p - carry.data());
    consumed += frame_bytes;
    taken -= carry.size() - frame_bytes;  // what is too much came with this step
    carry.clear();
    break;
  }
  return taken;
}

Result<void> Decoder::State::feed(std::span<const std::uint8_t> bytes) {
  if (is_ended) {
    return outcome;
  }
  std::size_t start = 0;
  if (!carry.empty()) {
    start = complete_carried(bytes);
    if (is_ended) {
      return outcome;
    }
    if (!carry.empty()) {
      return {};
    }
  }
  Input in{bytes.data() + start, bytes.data() + bytes.size()};
  while (in.p < in.end) {
    const std::uint8_t* const frame = in.p;
    const Parse result = parser.parse(in, consumed);
    if (result == Parse::kDone) {
      consumed += static_cast<std::uint64_t>(in.p - frame);
    } else if (result == Parse::kNeedsMore) {
      carry.assign(in.p, in.end);
      want(in.missing);
      return {};
    } else {
      return fail(result, in, frame);
    }
  }
  return {};
}

Decoder::Decoder(Visitor& visitor, DecodeLimits limits)
    : state_(std::make_unique<State>(visitor, limits)) {}
Decoder::~Decoder() = default;

Result<void> Decoder::feed(std::span<const std::uint8_t> bytes) { return state_->feed(bytes); }

Result<void> Decoder::finish() {
  State& state = *state_;
  if (state.is_ended) {
    return state.outcome;
  }
  if (state.carry.empty()) {
    if (state.consumed > 0) {
      return state.end({});
    }
    return state.end(make_error(ErrorCode::kCorrupt, "not a trace: the input is empty", 0));
  }
  // The last try may be older than the last bytes: they may hold what makes the frame wrong.
  Input in{state.carry.data(), state.carry.data() + state.carry.size()};
  const Parse result = state.parser.parse(in, state.consumed);
  if (result != Parse::kNeedsMore) {
    return state.fail(result, in, state.carry.data());
  }
  return state.end(std::unexpected(
      state.error(ErrorCode::kTruncated, "the input ends inside a frame", state.consumed)));
}

std::optional<std::string_view> Decoder::string(std::uint32_t id) const {
  const auto text = state_->parser.strings().find(id);
  if (!text) {
    return std::nullopt;
  }
  return std::string_view(text->data(), text->size());
}

std::optional<std::span<const std::uint64_t>> Decoder::stack(std::uint32_t id) const {
  return state_->parser.stacks().find(id);
}

DecodeStats Decoder::stats() const {
  return {state_->consumed, state_->parser.events(), state_->parser.streams()};
}

}  // namespace dial9::format
