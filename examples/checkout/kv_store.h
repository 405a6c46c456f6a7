// The store's memory: a map with a byte budget. Not thread-safe: the store's process is
// single-threaded on purpose, so that a slow answer is never a lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "kv_protocol.h"

namespace checkout::kv {

class Store {
 public:
  // `budget_bytes`: keys and values together; a SET above it is refused with an ERROR reply and
  // changes nothing.
  explicit Store(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // Does what the request says. ADD on a value that isn't a whole number, or that would overflow,
  // is an ERROR reply.
  Reply apply(const Request& request);

  std::size_t used_bytes() const { return used_bytes_; }

 private:
  Reply set(const std::string& key, std::string value);
  Reply add(const std::string& key, std::int64_t delta);

  std::size_t budget_bytes_;
  std::size_t used_bytes_ = 0;
  std::unordered_map<std::string, std::string> values_;
};

}  // namespace checkout::kv
