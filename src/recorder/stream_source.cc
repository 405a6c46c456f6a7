// See stream_source.h. A few words without a lock, so that a fork finds them whole.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/stream_source.h"

namespace dial9::internal {
namespace {

constinit StreamSource* g_sources[kMostStreamSources] = {};

}  // namespace

bool add_stream_source(StreamSource* source) noexcept {
  for (StreamSource*& place : g_sources) {
    StreamSource* none = nullptr;
    // Release pairs with the acquire in StreamSources().
    if (__atomic_compare_exchange_n(&place, &none, source, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
  }
  return false;
}

StreamSources::StreamSources() {
  for (StreamSource* const& place : g_sources) {
    StreamSource* source = __atomic_load_n(&place, __ATOMIC_ACQUIRE);
    if (source != nullptr) sources_[count_++] = source;
  }
}

void reset_stream_counts() {
  for (StreamSource* source : stream_sources()) source->events_ = 0;
}

std::vector<SourceStatus> stream_source_statuses() {
  std::vector<SourceStatus> statuses;
  for (const StreamSource* source : stream_sources()) {
    if (source->name().empty()) continue;
    SourceStatus status{std::string(source->name()), source->events_, source->shortfall()};
    if (status.events == 0 && status.reason.empty()) status.reason = "nothing to record so far";
    statuses.push_back(std::move(status));
  }
  return statuses;
}

std::uint64_t stream_sources_metadata_version() {
  std::uint64_t version = 0;
  for (const StreamSource* source : stream_sources()) version += source->metadata_version();
  return version;
}

Metadata stream_sources_metadata() {
  Metadata all;
  for (const StreamSource* source : stream_sources()) {
    const Metadata one = source->metadata();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace dial9::internal
