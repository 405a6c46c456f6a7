// The map behind the store, with its byte accounting.
// SPDX-License-Identifier: Apache-2.0
#include "kv_store.h"

#include <charconv>
#include <utility>

namespace checkout::kv {

Reply Store::apply(const Request& request) {
  switch (request.verb) {
    case Verb::kPing:
      return {ReplyKind::kPong, {}, 0};
    case Verb::kSet:
      return set(request.key, request.value);
    case Verb::kAdd:
      return add(request.key, request.delta);
    case Verb::kGet: {
      const auto found = values_.find(request.key);
      if (found == values_.end()) return {ReplyKind::kNone, {}, 0};
      return {ReplyKind::kValue, found->second, 0};
    }
    case Verb::kDelete: {
      const auto found = values_.find(request.key);
      if (found != values_.end()) {
        used_bytes_ -= found->first.size() + found->second.size();
        values_.erase(found);
      }
      return {ReplyKind::kOk, {}, 0};
    }
  }
  return {ReplyKind::kError, "unknown verb", 0};
}

Reply Store::set(const std::string& key, std::string value) {
  const auto found = values_.find(key);
  const std::size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const std::size_t after = key.size() + value.size();
  if (used_bytes_ - before + after > budget_bytes_) return {ReplyKind::kError, "store is full", 0};
  used_bytes_ = used_bytes_ - before + after;
  values_[key] = std::move(value);
  return {ReplyKind::kOk, {}, 0};
}

Reply Store::add(const std::string& key, std::int64_t delta) {
  std::int64_t number = 0;
  if (const auto found = values_.find(key); found != values_.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return {ReplyKind::kError, "value is not a number", 0};
    }
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(number, delta, &sum)) return {ReplyKind::kError, "overflow", 0};
  Reply reply = set(key, std::to_string(sum));
  if (reply.kind == ReplyKind::kOk) reply = {ReplyKind::kInt, {}, sum};
  return reply;
}

}  // namespace checkout::kv
