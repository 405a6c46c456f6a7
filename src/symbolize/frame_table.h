// The frames of many addresses, each text of them once: what the process that reads debug
// information answers, what the cache on disk holds, what a symbolizer keeps. Strongest property:
// what was read of bytes that nobody vouches for takes no more than a small multiple of them, and
// is whole or nothing; without memory it stays what it was.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbolize/frame.h"
#include "symbolize/frame_bytes.h"

namespace dial9::symbolize {

class FrameTable {
 public:
  FrameTable() = default;
  FrameTable(FrameTable&&) noexcept = default;
  FrameTable& operator=(FrameTable&&) noexcept = default;
  FrameTable(const FrameTable&) = delete;  // it refers to its own texts
  FrameTable& operator=(const FrameTable&) = delete;

  // Of an address that has none yet: the first kMostFramesOfAddress, with texts cut to
  // kMostTextBytes. No frames: that nothing is known of it is known.
  void add(std::uint64_t address, std::span<const Frame> frames);
  // What the other has of an address that has none here.
  void take(const FrameTable& from);

  bool contains(std::uint64_t address) const { return by_address_.contains(address); }
  // Empty also where the address isn't in it.
  std::vector<Frame> frames(std::uint64_t address) const;

  std::size_t size() const { return by_address_.size(); }  // addresses
  bool empty() const { return by_address_.empty(); }
  std::size_t bytes() const;  // of memory, about
  std::size_t written_bytes() const { return written_bytes_; }

  void write(ByteWriter& out) const;
  // As write() wrote it, at most `most_addresses`. Else `in` isn't whole, and the table empty.
  static FrameTable read(ByteReader& in, std::size_t most_addresses);

  bool operator==(const FrameTable& other) const;

 private:
  struct Held {  // texts by their numbers
    std::uint32_t name;
    std::uint32_t file;
    std::uint32_t line;
    std::uint32_t at_file;
    std::uint32_t at_line;
    std::uint32_t is_inlined;
  };
  struct Slice {
    std::uint32_t first;
    std::uint32_t count;
  };
  std::uint32_t text_number(std::string_view text);  // 0: the empty one
  std::string_view text(std::uint32_t number) const;
  void hold(std::uint64_t address, std::span<const Held> frames);

  // From 1 on; they stay where they are. A deque would take memory to be moved.
  std::vector<std::unique_ptr<const std::string>> texts_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::vector<Held> frames_;
  std::unordered_map<std::uint64_t, Slice> by_address_;
  std::size_t text_bytes_ = 0;
  std::size_t written_bytes_ = 2 * sizeof(std::uint32_t);
};

}  // namespace dial9::symbolize
