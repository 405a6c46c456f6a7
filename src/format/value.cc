// One step of the walk; the parsing is parse.h's. See value.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/value.h"

#include "base/bytes.h"
#include "format/parse.h"

namespace dial9::format {
namespace {

// Takes one element: its type byte (StringMap: none, all are strings) and its value.
bool take(Input& in, FieldType container, std::uint32_t depth, Value& out) {
  FieldType type = FieldType::kString;
  if (container != FieldType::kStringMap) {
    if (!in.has(1) || !is_known_type(*in.p)) {
      return false;
    }
    type = static_cast<FieldType>(*in.p++);
  }
  out = Value{type, true, 0, {}};
  return parse_value(in, type, depth + 1, nullptr, out) == Parse::kDone;
}

}  // namespace

ElementCursor::ElementCursor(const Value& container, std::uint32_t depth)
    : type_(container.type), depth_(depth) {
  if (!is_container(container.type) || !container.is_present) {
    return;
  }
  if (depth > kMaxNesting || container.bytes.size() < sizeof remaining_) {
    is_ok_ = false;
    return;
  }
  remaining_ = load_le<std::uint32_t>(container.bytes.data());
  position_ = container.bytes.data() + sizeof remaining_;
  end_ = container.bytes.data() + container.bytes.size();
}

bool ElementCursor::next() {
  if (remaining_ == 0 || !is_ok_) {
    return false;
  }
  Input in{position_, end_};
  is_ok_ = (!is_map() || take(in, type_, depth_, key_)) && take(in, type_, depth_, value_);
  position_ = in.p;
  --remaining_;
  return is_ok_;
}

}  // namespace dial9::format
