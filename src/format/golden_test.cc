// The bytes of every frame and every field type, written by hand: the encoder writes exactly these
// and the decoder reads exactly these. A change here is a new version of the format.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>

#include "format/encoder.h"
#include "format/test_support.h"

namespace dial9::format::test {
namespace {

// A stream whose only event type has one field of `type`, and the value `encoded`.
struct FieldGolden {
  const char* name;
  FieldType type;
  const char* encoded;
  const char* shown;
  void (*write)(Encoder&);
};

constexpr std::uint64_t kTwoFrames[] = {0x1122334455667788, 1};
constexpr std::uint8_t kTwoBytes[] = {0x00, 0xfe};

const FieldGolden kFields[] = {
    {"I64", FieldType::kI64, "fe ff ff ff ff ff ff ff", "1:18446744073709551614",
     [](Encoder& e) { e.i64(-2); }},
    {"F64", FieldType::kF64, "00 00 00 00 00 00 f8 3f", "2:4609434218613702656",
     [](Encoder& e) { e.f64(1.5); }},
    {"BoolTrue", FieldType::kBool, "01", "3:1", [](Encoder& e) { e.boolean(true); }},
    {"BoolFalse", FieldType::kBool, "00", "3:0", [](Encoder& e) { e.boolean(false); }},
    {"String", FieldType::kString, "03 00 00 00 'abc'", "4:'abc'",
     [](Encoder& e) { e.string("abc"); }},
    {"Bytes", FieldType::kBytes, "02 00 00 00 00 fe", "5:'\\0\\254'",
     [](Encoder& e) { e.bytes(kTwoBytes); }},
    {"PooledString", FieldType::kPooledString, "44 33 22 11", "7:287454020",
     [](Encoder& e) { e.pool_id(0x11223344); }},
    {"StackFrames", FieldType::kStackFrames,
     "02 00 00 00 88 77 66 55 44 33 22 11 01 00 00 00 00 00 00 00", "8:[1234605616436508552,1,]",
     [](Encoder& e) { e.stack_frames(kTwoFrames); }},
    {"VarintOneByte", FieldType::kVarint, "7f", "9:127", [](Encoder& e) { e.varint(127); }},
    {"VarintTwoBytes", FieldType::kVarint, "ac 02", "9:300", [](Encoder& e) { e.varint(300); }},
    {"VarintTenBytes", FieldType::kVarint, "ff ff ff ff ff ff ff ff ff 01",
     "9:18446744073709551615", [](Encoder& e) { e.varint(~std::uint64_t{0}); }},
    {"StringMap", FieldType::kStringMap, "01 00 00 00 01 00 00 00 'k' 02 00 00 00 'vv'",
     "10{4:'k'=4:'vv',}", [](Encoder& e) { e.string_map({{"k", "vv"}}); }},
    {"U8", FieldType::kU8, "ff", "11:255", [](Encoder& e) { e.u8(255); }},
    {"U16", FieldType::kU16, "01 80", "12:32769", [](Encoder& e) { e.u16(0x8001); }},
    {"U32", FieldType::kU32, "04 03 02 81", "13:2164392708", [](Encoder& e) { e.u32(0x81020304); }},
    {"DynamicList", FieldType::kDynamicList, "03 00 00 00 0b 05 04 01 00 00 00 'x' 0e 00 00 00 00",
     "14{11:5,4:'x',14{},}",
     [](Encoder& e) {
       e.list(3);
       e.element(FieldType::kU8);
       e.u8(5);
       e.element(FieldType::kString);
       e.string("x");
       e.element(FieldType::kDynamicList);
       e.list(0);
     }},
    {"DynamicMap", FieldType::kDynamicMap,
     "02 00 00 00 0b 01 03 01 04 01 00 00 00 'k' 0f 01 00 00 00 0b 02 0b 03",
     "15{11:1=3:1,4:'k'=15{11:2=11:3,},}",
     [](Encoder& e) {
       e.map(2);
       e.element(FieldType::kU8);
       e.u8(1);
       e.element(FieldType::kBool);
       e.boolean(true);
       e.element(FieldType::kString);
       e.string("k");
       e.element(FieldType::kDynamicMap);
       e.map(1);
       e.element(FieldType::kU8);
       e.u8(2);
       e.element(FieldType::kU8);
       e.u8(3);
     }},
};

class GoldenField : public testing::TestWithParam<FieldGolden> {};

Bytes one_field_stream(std::uint8_t wire_type, const Bytes& value) {
  return join({hex(kHeader),
               hex("01 07 00  01 00 'E'  00  01 00  01 00 'f'"),
               {wire_type},
               hex("02 07 00"),
               value});
}

TEST_P(GoldenField, IsWrittenAsTheseBytesAndReadFromThem) {
  const FieldGolden& golden = GetParam();
  const Bytes expected =
      one_field_stream(static_cast<std::uint8_t>(golden.type), hex(golden.encoded));
  Encoder out;
  out.schema(7, "E", false, {{"f", golden.type}});
  out.begin_untimed(7);
  golden.write(out);
  EXPECT_EQ(out.misuse(), "");
  EXPECT_EQ(out.take(), expected);

  const Outcome decoded = decode(expected);
  EXPECT_EQ(decoded.message, "");
  ASSERT_EQ(decoded.lines.size(), 4u);
  EXPECT_EQ(decoded.lines[2], "E t=0 @18 " + std::string(golden.shown));
}

TEST_P(GoldenField, HasOneByteInFrontWhenItIsOptional) {
  const FieldGolden& golden = GetParam();
  const auto wire_type = static_cast<std::uint8_t>(static_cast<int>(golden.type) | 0x80);
  const Bytes expected =
      join({one_field_stream(wire_type, join({{0x01}, hex(golden.encoded)})), hex("02 07 00 00")});
  Encoder out;
  out.schema(7, "E", false, {{"f", golden.type, true}});
  out.begin_untimed(7);
  out.present();
  golden.write(out);
  out.begin_untimed(7);
  out.absent();
  EXPECT_EQ(out.misuse(), "");
  EXPECT_EQ(out.take(), expected);

  const Outcome decoded = decode(expected);
  EXPECT_EQ(decoded.message, "");
  ASSERT_EQ(decoded.lines.size(), 5u);
  EXPECT_EQ(decoded.lines[2], "E t=0 @18 " + std::string(golden.shown));
  EXPECT_TRUE(decoded.lines[3].ends_with(":absent")) << decoded.lines[3];
}

INSTANTIATE_TEST_SUITE_P(Every, GoldenField, testing::ValuesIn(kFields),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(GoldenFrames, AreTheSixThatTheFormatHas) {
  const Bytes expected = hex(R"(
      54 52 43 00 01
      01 02 01  04 00 'Poll'  01  03 00  06 00 'worker' 09  04 00 'name' 07  05 00 'stack' 86
      06 82 02  02 00  00 00 04 00 'unit' 02 00 00 00 'ns'  01 00 01 00 'k' 00 00 00 00
      03 01 00 00 00  00 00 00 00  02 00 00 00 'io'
      04 01 00 00 00  00 00 00 00  02 00 00 00  10 00 00 00 00 00 00 00  20 00 00 00 00 00 00 00
      05 40 42 0f 00 01 00 00 00
      02 02 01  00 00 00  03  00 00 00 00  01 00 00 00 00
      02 02 01  ff ff ff  04  00 00 00 00  00
      05 40 42 0f 02 01 00 00 00
      02 02 01  00 00 00  05  00 00 00 00  00)");
  constexpr std::uint64_t stack[] = {0x10, 0x20};
  constexpr std::uint64_t first_ns = 0x1000f4240;
  Encoder out;
  out.schema(0x102, "Poll", true,
             {{"worker", FieldType::kVarint},
              {"name", FieldType::kPooledString},
              {"stack", FieldType::kPooledStackFrames, true}});
  out.annotations(0x102, {{0, "unit", "ns"}, {1, "k", ""}});
  out.begin(0x102, first_ns);
  out.varint(3);
  out.pooled_string("io");
  out.present();
  out.pooled_stack(stack);
  out.begin(0x102, first_ns + kMaxDeltaNs);
  out.varint(4);
  out.pooled_string("io");
  out.absent();
  out.begin(0x102, first_ns + 2 * (kMaxDeltaNs + 1));
  out.varint(5);
  out.pooled_string("io");
  out.absent();
  EXPECT_EQ(out.misuse(), "");
  EXPECT_EQ(out.take(), expected);

  EXPECT_EQ(decode(expected).lines,
            (std::vector<std::string>{
                "stream @0",
                "schema 0 Poll timed worker:9 name:7 stack:6?",
                "schema 0 Poll timed worker:9 name:7 stack:6? #0.unit=ns #1.k=",
                "string 0 'io'",
                "stack 0 16 32",
                "Poll t=4295967296 @122 9:3 7:0 6:0",
                "Poll t=4312744511 @138 9:4 7:0 6:absent",
                "Poll t=4329521728 @159 9:5 7:0 6:absent",
                "end",
            }));
}

// The hex at the start of the lines of the last example in the spec.
Bytes example_of_the_spec() {
  std::ifstream file(DIAL9_SOURCE_DIR "/docs/spec/trace_format.md");
  std::string line;
  std::string example;
  bool is_inside = false;
  while (std::getline(file, line)) {
    if (line.starts_with("```")) {
      is_inside = !is_inside;
      example = is_inside ? std::string{} : example;
    } else if (is_inside) {
      const auto is_hex = [&](std::size_t at) {
        return at < line.size() && std::isxdigit(static_cast<unsigned char>(line[at])) != 0;
      };
      for (std::size_t at = line.find_first_not_of(' '); is_hex(at) && is_hex(at + 1);
           at = line.find_first_not_of(' ', at + 2)) {
        example += line.substr(at, 2) + " ";
      }
    }
  }
  return hex(example);
}

TEST(GoldenFrames, TheExampleOfTheSpecMeansWhatItSays) {
  const Bytes example = example_of_the_spec();
  EXPECT_EQ(example.size(), 77u);
  EXPECT_EQ(decode(example).lines,
            (std::vector<std::string>{"stream @0", "schema 0 Poll timed worker:9 name:7?",
                                      "string 0 'io'", "Poll t=1000000 @57 9:3 7:0",
                                      "Poll t=1001000 @69 9:4 7:absent", "end"}));
}

}  // namespace
}  // namespace dial9::format::test
