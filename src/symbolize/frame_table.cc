// See frame_table.h. Written: how many addresses and how many texts; the texts; then each address
// with the number of its frames, and these: six numbers each, those of texts counted from 1 on.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_table.h"

#include <algorithm>

namespace dial9::symbolize {
namespace {

constexpr std::size_t kNumberBytes = sizeof(std::uint32_t);
constexpr std::size_t kWrittenAddressBytes = sizeof(std::uint64_t) + kNumberBytes;
constexpr std::size_t kTextsOfFrame = 3;
// A node of a hash map, with its place in the table of buckets.
constexpr std::size_t kNodeBytes = 48;

// What is appended then takes no memory.
template <class T>
void make_room(std::vector<T>& in, std::size_t more) {
  if (in.capacity() - in.size() < more) in.reserve(std::max(2 * in.size(), in.size() + more));
}

}  // namespace

std::uint32_t FrameTable::text_number(std::string_view text) {
  if (text.empty()) return 0;
  if (text.size() > kMostTextBytes) return text_number(bounded_text(text));
  if (const auto at = numbers_.find(text); at != numbers_.end()) return at->second;
  auto held = std::make_unique<const std::string>(text);
  make_room(texts_, 1);
  const auto number = static_cast<std::uint32_t>(texts_.size() + 1);
  numbers_.emplace(*held, number);
  texts_.push_back(std::move(held));
  text_bytes_ += text.size();
  written_bytes_ += kNumberBytes + text.size();
  return number;
}

std::string_view FrameTable::text(std::uint32_t number) const {
  return number == 0 ? std::string_view() : std::string_view(*texts_[number - 1]);
}

void FrameTable::hold(std::uint64_t address, std::span<const Held> frames) {
  const auto first = static_cast<std::uint32_t>(frames_.size());
  make_room(frames_, frames.size());
  by_address_.emplace(address, Slice{first, static_cast<std::uint32_t>(frames.size())});
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  written_bytes_ += kWrittenAddressBytes + frames.size_bytes();
}

void FrameTable::add(std::uint64_t address, std::span<const Frame> frames) {
  if (contains(address)) return;
  std::vector<Held> held;
  for (const Frame& frame : frames.first(std::min(frames.size(), kMostFramesOfAddress))) {
    held.push_back({text_number(frame.name), text_number(frame.file), frame.line,
                    text_number(frame.at_file), frame.at_line, frame.is_inlined ? 1U : 0U});
  }
  hold(address, held);
}

void FrameTable::take(const FrameTable& from) {
  constexpr std::uint32_t kNotYet = ~std::uint32_t{0};
  std::vector<std::uint32_t> here(from.texts_.size() + 1, kNotYet);
  const auto number = [&](std::uint32_t there) {
    if (here[there] == kNotYet) here[there] = text_number(from.text(there));
    return here[there];
  };
  std::vector<Held> held;
  for (const auto& [address, slice] : from.by_address_) {
    if (contains(address)) continue;
    const auto of_address = std::span(from.frames_).subspan(slice.first, slice.count);
    held.assign(of_address.begin(), of_address.end());
    for (Held& one : held) {
      one.name = number(one.name);
      one.file = number(one.file);
      one.at_file = number(one.at_file);
    }
    hold(address, held);
  }
}

std::vector<Frame> FrameTable::frames(std::uint64_t address) const {
  std::vector<Frame> frames;
  const auto at = by_address_.find(address);
  if (at == by_address_.end()) return frames;
  frames.reserve(at->second.count);
  for (std::uint32_t i = 0; i < at->second.count; ++i) {
    const Held& held = frames_[at->second.first + i];
    frames.push_back({.name = std::string(text(held.name)),
                      .file = std::string(text(held.file)),
                      .line = held.line,
                      .at_file = std::string(text(held.at_file)),
                      .at_line = held.at_line,
                      .is_inlined = held.is_inlined != 0});
  }
  return frames;
}

std::size_t FrameTable::bytes() const {
  return text_bytes_ + texts_.size() * (sizeof(std::string) + kNodeBytes) +
         frames_.capacity() * sizeof(Held) + by_address_.size() * kNodeBytes;
}

void FrameTable::write(ByteWriter& out) const {
  out.u32(static_cast<std::uint32_t>(by_address_.size()));
  out.u32(static_cast<std::uint32_t>(texts_.size()));
  for (const auto& text : texts_) out.text(*text);
  for (const auto& [address, slice] : by_address_) {
    out.u64(address);
    out.u32(slice.count);
    for (std::uint32_t i = 0; i < slice.count; ++i) {
      const Held& held = frames_[slice.first + i];
      for (const std::uint32_t number :
           {held.name, held.file, held.line, held.at_file, held.at_line, held.is_inlined}) {
        out.u32(number);
      }
    }
  }
}

// Sizes are checked before anything is taken for them: an address with its frames has a size, and
// a text that no frame can need isn't one of ours.
FrameTable FrameTable::read(ByteReader& in, std::size_t most_addresses) {
  FrameTable table;
  const std::size_t addresses = in.u32();
  const std::size_t texts = in.u32();
  const bool is_sound = addresses <= most_addresses &&
                        addresses <= in.rest().size() / kWrittenAddressBytes &&
                        texts <= addresses * kMostFramesOfAddress * kTextsOfFrame;
  if (!is_sound) in.fail();
  for (std::size_t i = 0; i < texts && in.is_whole(); ++i) {
    const std::string text = in.text();
    if (table.text_number(text) != i + 1) in.fail();  // empty, or there before
  }
  std::vector<Held> frames;
  for (std::size_t i = 0; i < addresses && in.is_whole(); ++i) {
    const std::uint64_t address = in.u64();
    const std::uint32_t count = in.u32();
    frames.clear();
    if (count > kMostFramesOfAddress || table.contains(address)) in.fail();
    for (std::uint32_t k = 0; k < count && in.is_whole(); ++k) {
      Held& held = frames.emplace_back();
      for (std::uint32_t* const number :
           {&held.name, &held.file, &held.line, &held.at_file, &held.at_line, &held.is_inlined}) {
        *number = in.u32();
      }
      const std::uint32_t most = std::max({held.name, held.file, held.at_file});
      if (most > texts || held.is_inlined > 1) in.fail();
    }
    table.hold(address, frames);
  }
  if (!in.is_whole()) return {};
  return table;
}

bool FrameTable::operator==(const FrameTable& other) const {
  return size() == other.size() &&
         std::all_of(by_address_.begin(), by_address_.end(), [&](const auto& one) {
           return other.contains(one.first) && frames(one.first) == other.frames(one.first);
         });
}

}  // namespace dial9::symbolize
