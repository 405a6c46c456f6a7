// The cursor over elements: order, nesting, and that no bytes lead it astray.
// SPDX-License-Identifier: Apache-2.0
#include "format/value.h"

#include <gtest/gtest.h>

#include "format/test_support.h"

namespace dial9::format::test {
namespace {

Value container(FieldType type, const Bytes& bytes) { return Value{type, true, 0, bytes}; }

TEST(ElementCursor, WalksAListInOrder) {
  const Bytes bytes = hex("03 00 00 00  0b 07  09 ac 02  04 02 00 00 00 'hi'");
  ElementCursor cursor(container(FieldType::kDynamicList, bytes));
  EXPECT_FALSE(cursor.is_map());
  EXPECT_EQ(cursor.remaining(), 3u);
  std::vector<std::string> seen;
  while (cursor.next()) {
    seen.push_back(show(cursor.value()));
    EXPECT_FALSE(cursor.key().is_present);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"11:7", "9:300", "4:'hi'"}));
  EXPECT_TRUE(cursor.is_ok());
  EXPECT_EQ(cursor.remaining(), 0u);
}

TEST(ElementCursor, HandsOutKeysAndValuesOfBothKindsOfMap) {
  const Bytes strings = hex("01 00 00 00  01 00 00 00 'k'  01 00 00 00 'v'");
  ElementCursor string_map(container(FieldType::kStringMap, strings));
  ASSERT_TRUE(string_map.next());
  EXPECT_EQ(string_map.key().text(), "k");
  EXPECT_EQ(string_map.value().text(), "v");
  EXPECT_FALSE(string_map.next());

  const Bytes typed = hex("01 00 00 00  0c 01 02  02 00 00 00 00 00 00 f0 3f");
  ElementCursor dynamic_map(container(FieldType::kDynamicMap, typed));
  ASSERT_TRUE(dynamic_map.next());
  EXPECT_EQ(dynamic_map.key().bits, 0x0201u);
  EXPECT_EQ(dynamic_map.value().f64(), 1.0);
}

TEST(ElementCursor, StepsOverNestedContainersAndIntoThem) {
  const Bytes bytes = hex("02 00 00 00  0e 01 00 00 00 0b 05  0b 06");
  ElementCursor outer(container(FieldType::kDynamicList, bytes));
  ASSERT_TRUE(outer.next());
  ElementCursor inner(outer.value(), outer);
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.value().bits, 5u);
  EXPECT_FALSE(inner.next());
  ASSERT_TRUE(outer.next());
  EXPECT_EQ(outer.value().bits, 6u);
}

TEST(ElementCursor, HasNoElementsInWhatIsNoContainerOrIsAbsent) {
  ElementCursor scalar(Value{FieldType::kU8, true, 3, {}});
  EXPECT_FALSE(scalar.next());
  EXPECT_TRUE(scalar.is_ok());
  ElementCursor absent(Value{FieldType::kDynamicList, false, 0, {}});
  EXPECT_FALSE(absent.next());
  EXPECT_TRUE(absent.is_ok());
}

TEST(ElementCursor, StopsAtTheEndOfItsBytesWhateverTheCountSays) {
  for (const FieldType type :
       {FieldType::kStringMap, FieldType::kDynamicList, FieldType::kDynamicMap}) {
    const Bytes bytes = hex("ff ff ff ff");
    ElementCursor cursor(container(type, bytes));
    EXPECT_FALSE(cursor.next());
    EXPECT_FALSE(cursor.is_ok());
    EXPECT_FALSE(cursor.next());
  }
  const Bytes too_short = hex("01 00");
  EXPECT_FALSE(ElementCursor(container(FieldType::kDynamicList, too_short)).is_ok());
}

TEST(ElementCursor, StopsAtAnUnknownType) {
  const Bytes bytes = hex("02 00 00 00  0b 07  63 00");
  ElementCursor cursor(container(FieldType::kDynamicList, bytes));
  EXPECT_TRUE(cursor.next());
  EXPECT_FALSE(cursor.next());
  EXPECT_FALSE(cursor.is_ok());
}

// Walks down first elements; returns the levels that could be entered.
int levels_entered(const Value& value, ElementCursor cursor, int level = 1) {
  (void)value;
  if (!cursor.next() || !is_container(cursor.value().type)) {
    return level;
  }
  return levels_entered(cursor.value(), ElementCursor(cursor.value(), cursor), level + 1);
}

TEST(ElementCursor, BoundsTheNesting) {
  const auto nested = [](int levels) {
    Bytes bytes;
    for (int level = 1; level < levels; ++level) {
      bytes = join({bytes, hex("01 00 00 00 0e")});
    }
    return join({bytes, hex("00 00 00 00")});
  };
  const Bytes allowed = nested(64);
  const Value good = container(FieldType::kDynamicList, allowed);
  EXPECT_EQ(levels_entered(good, ElementCursor(good)), 64);
  const Bytes deeper = nested(65);
  ElementCursor cursor(container(FieldType::kDynamicList, deeper));
  EXPECT_FALSE(cursor.next());
  EXPECT_FALSE(cursor.is_ok());
}

}  // namespace
}  // namespace dial9::format::test
