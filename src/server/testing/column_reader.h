// Reads a reply of columns for the tests: slow, checks everything, throws std::out_of_range or
// std::runtime_error for whatever isn't there. Spec: docs/spec/http_api.md, "Binary columns".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace dial9::server::testing {

class ColumnReader {
 public:
  explicit ColumnReader(std::string bytes) : bytes_(std::move(bytes)) {
    if (bytes_.substr(0, 4) != "D9C1") throw std::runtime_error("no columns: " + bytes_);
  }

  std::vector<double> f64(const std::string& name) const { return values<double>(name, 1); }
  std::vector<float> f32(const std::string& name) const { return values<float>(name, 2); }
  std::vector<std::uint32_t> u32(const std::string& name) const {
    return values<std::uint32_t>(name, 3);
  }
  std::vector<std::uint8_t> u8(const std::string& name) const {
    return values<std::uint8_t>(name, 4);
  }
  std::vector<std::string> text(const std::string& name) const {
    const Place place = find(name, 5);
    std::vector<std::string> out;
    const std::size_t start = place.offset + (place.rows + 1) * 4;
    for (std::uint32_t i = 0; i < place.rows; ++i) {
      const auto from = load<std::uint32_t>(place.offset + i * 4);
      const auto to = load<std::uint32_t>(place.offset + (i + 1) * 4);
      out.push_back(bytes_.substr(start + from, to - from));
    }
    return out;
  }

 private:
  struct Place {
    std::uint32_t rows = 0;
    std::uint32_t offset = 0;
  };
  template <class T>
  T load(std::size_t at) const {
    T out;
    if (at + sizeof out > bytes_.size()) throw std::out_of_range("the reply ends");
    std::memcpy(&out, bytes_.data() + at, sizeof out);
    return out;
  }
  Place find(const std::string& name, std::uint32_t type) const {
    const auto count = load<std::uint32_t>(4);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t at = 16 + i * 24;
      if (name != bytes_.substr(at, 8).c_str()) continue;
      if (load<std::uint32_t>(at + 8) != type) throw std::runtime_error(name + ": another type");
      return {load<std::uint32_t>(at + 12), load<std::uint32_t>(at + 16)};
    }
    throw std::runtime_error("no column " + name);
  }
  template <class T>
  std::vector<T> values(const std::string& name, std::uint32_t type) const {
    const Place place = find(name, type);
    std::vector<T> out;
    for (std::uint32_t i = 0; i < place.rows; ++i) {
      out.push_back(load<T>(place.offset + i * sizeof(T)));
    }
    return out;
  }

  std::string bytes_;
};

}  // namespace dial9::server::testing
