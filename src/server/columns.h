// Builds a reply of binary columns: a fixed header, one descriptor a column, then the values, each
// column aligned to 8 bytes so that a browser can lay typed arrays over it without copying.
// Spec: docs/spec/http_api.md, "Binary columns".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dial9::server {

enum class ColumnType : std::uint32_t { kF64 = 1, kF32 = 2, kU32 = 3, kU8 = 4, kText = 5 };

// No such row: an unknown poll, task or name.
inline constexpr std::uint32_t kNoIndex = 0xffffffffu;

class ColumnWriter {
 public:
  // `name`: 1 to 8 ASCII characters, each at most once. The values are copied at once.
  void add(std::string_view name, std::span<const double> values);
  void add(std::string_view name, std::span<const float> values);
  void add(std::string_view name, std::span<const std::uint32_t> values);
  void add(std::string_view name, std::span<const std::uint8_t> values);
  void add_text(std::string_view name, const std::vector<std::string>& values);

  // The whole reply; the writer is empty afterwards.
  std::string finish(std::uint64_t generation);

 private:
  struct Column {
    std::string name;
    ColumnType type;
    std::uint32_t rows;
    std::string bytes;
  };
  void add_raw(std::string_view name, ColumnType type, std::size_t rows, const void* data,
               std::size_t size_bytes);
  std::vector<Column> columns_;
};

}  // namespace dial9::server
