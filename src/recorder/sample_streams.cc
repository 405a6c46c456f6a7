// See sample_streams.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/sample_streams.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dial9::internal {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{64} << 10;

}  // namespace

format::Encoder& SampleStreams::begin(std::uint16_t type, std::uint64_t at_ns) {
  if (out_.data().size() >= kStreamBytes) close();
  if (!std::exchange(has_schema_[type], true)) add_schema_(out_, type);
  out_.begin(type, at_ns);
  info_.first_ns = info_.events == 0 ? at_ns : std::min(info_.first_ns, at_ns);
  info_.last_ns = std::max(info_.last_ns, at_ns);
  ++info_.events;
  return out_;
}

void SampleStreams::close() {
  if (info_.events == 0) return;
  done_.push_back({out_.take(), info_});
  info_ = {};
  std::fill(std::begin(has_schema_), std::end(has_schema_), false);
}

std::vector<SourceStream> SampleStreams::take() {
  close();
  return std::exchange(done_, {});
}

void put_optional(format::Encoder& out, std::optional<std::uint64_t> value) {
  if (!value) return out.absent();
  out.present();
  out.varint(*value);
}

void put_id(format::Encoder& out, std::uint64_t id) {
  put_optional(out, id == 0 ? std::nullopt : std::optional(id));
}

void put_text(format::Encoder& out, std::string_view text, bool is_present) {
  if (!is_present) return out.absent();
  out.present();
  out.pooled_string(text);
}

void put_text(format::Encoder& out, std::string_view text) { put_text(out, text, !text.empty()); }

}  // namespace dial9::internal
