// See columns.h.
// Strongest property: whatever was added, every offset in the header lies inside the reply.
// Spec: docs/spec/http_api.md, "Binary columns".
// SPDX-License-Identifier: Apache-2.0
#include "server/columns.h"

#include <bit>
#include <cstring>

namespace dial9::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "columns are copied as they lie in memory");

constexpr std::size_t kHeadBytes = 16;
constexpr std::size_t kDescriptorBytes = 24;
constexpr std::size_t kNameBytes = 8;

std::size_t aligned(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

}  // namespace

void ColumnWriter::add_raw(std::string_view name, ColumnType type, std::size_t rows,
                           const void* data, std::size_t size_bytes) {
  Column column{std::string(name), type, static_cast<std::uint32_t>(rows), {}};
  column.name.resize(kNameBytes, '\0');
  if (size_bytes != 0) column.bytes.assign(static_cast<const char*>(data), size_bytes);
  columns_.push_back(std::move(column));
}

void ColumnWriter::add(std::string_view name, std::span<const double> values) {
  add_raw(name, ColumnType::kF64, values.size(), values.data(), values.size_bytes());
}
void ColumnWriter::add(std::string_view name, std::span<const float> values) {
  add_raw(name, ColumnType::kF32, values.size(), values.data(), values.size_bytes());
}
void ColumnWriter::add(std::string_view name, std::span<const std::uint32_t> values) {
  add_raw(name, ColumnType::kU32, values.size(), values.data(), values.size_bytes());
}
void ColumnWriter::add(std::string_view name, std::span<const std::uint8_t> values) {
  add_raw(name, ColumnType::kU8, values.size(), values.data(), values.size_bytes());
}

void ColumnWriter::add_text(std::string_view name, const std::vector<std::string>& values) {
  std::string bytes;
  std::uint32_t offset = 0;
  append(bytes, offset);
  for (const std::string& value : values) {
    offset += static_cast<std::uint32_t>(value.size());
    append(bytes, offset);
  }
  for (const std::string& value : values) bytes += value;
  add_raw(name, ColumnType::kText, values.size(), bytes.data(), bytes.size());
}

std::string ColumnWriter::finish(std::uint64_t generation) {
  std::string out = "D9C1";
  append(out, static_cast<std::uint32_t>(columns_.size()));
  append(out, generation);
  std::size_t offset = aligned(kHeadBytes + columns_.size() * kDescriptorBytes);
  std::size_t total = offset;
  for (const Column& column : columns_) total = aligned(total + column.bytes.size());
  out.reserve(total);
  for (const Column& column : columns_) {
    out += column.name;
    append(out, static_cast<std::uint32_t>(column.type));
    append(out, column.rows);
    append(out, static_cast<std::uint32_t>(offset));
    append(out, std::uint32_t{0});
    offset = aligned(offset + column.bytes.size());
  }
  for (const Column& column : columns_) {
    out.resize(aligned(out.size()), '\0');
    out += column.bytes;
  }
  out.resize(aligned(out.size()), '\0');
  columns_.clear();
  return out;
}

}  // namespace dial9::server
