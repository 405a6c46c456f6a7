// Undoes gzip (one or many members) in front of the decoder, by sniffing the magic 1f 8b: plain
// input passes through untouched and uncopied. Streaming: memory is one inflate window and one
// output block, whatever the ratio, all of it by operator new, so that where there is none the
// caller is told, and what was inflated so far isn't taken for the whole; an inflate
// bomb costs time in proportion to what it inflates to, which the sink can stop. No threads, no
// files.
// Spec: docs/spec/trace_format.md, "Compression".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"

namespace dial9::format {

// Not thread-safe; one Gunzip an input.
class Gunzip {
 public:
  // Takes inflated (or passed-through) bytes, valid during the call; an error that it returns stops
  // the feed and is returned by it.
  using Sink = std::function<Result<void>(std::span<const std::uint8_t>)>;

  explicit Gunzip(Sink sink);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Takes chunks of any size. Errors: kCorrupt with the offset in the compressed input
  // (where inflate noticed: up to a few bytes behind the damage); the sink's.
  // After an error every further call returns the same one. Bytes behind the last member that
  // start no other one are kCorrupt, except zero padding, which gzip allows.
  Result<void> feed(std::span<const std::uint8_t> bytes);

  // The input's end. kTruncated if a member is unfinished. What was inflated before went to the
  // sink. (Empty input is not this class's matter: the sink never sees a byte.)
  Result<void> finish();

  // Whether the input turned out to be gzip. Known after its second byte; false before.
  bool is_gzip() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dial9::format
