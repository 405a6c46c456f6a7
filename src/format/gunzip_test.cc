// Gzip in front of the decoder: sniffed, one or many members, cut or damaged, in chunks of any
// size.
// SPDX-License-Identifier: Apache-2.0
#include "format/gunzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>

#include "format/test_support.h"

namespace dial9::format::test {
namespace {

Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes packed(deflateBound(&stream, static_cast<uLong>(plain.size())) + 32);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

struct Unpacked {
  Bytes bytes;
  Result<void> result;
  bool is_gzip = false;
};

Unpacked gunzip(const Bytes& input, std::size_t chunk_bytes) {
  Unpacked unpacked;
  Gunzip reader([&](std::span<const std::uint8_t> part) -> Result<void> {
    unpacked.bytes.insert(unpacked.bytes.end(), part.begin(), part.end());
    return {};
  });
  for (std::size_t at = 0; at < input.size(); at += chunk_bytes) {
    (void)reader.feed(std::span(input).subspan(at, std::min(chunk_bytes, input.size() - at)));
  }
  unpacked.result = reader.finish();
  unpacked.is_gzip = reader.is_gzip();
  return unpacked;
}

Bytes noise(std::size_t size) {
  std::minstd_rand random(3);
  Bytes bytes(size);
  std::generate(bytes.begin(), bytes.end(),
                [&] { return static_cast<std::uint8_t>(random() % 20); });
  return bytes;
}

TEST(Gunzip, PassesPlainInputThrough) {
  for (const Bytes& plain : {hex("54 52 43 00 01"), hex("1f"), hex("1f 00 8b"), hex("8b 1f")}) {
    for (const std::size_t chunk_bytes : {1u, 2u, 100u}) {
      const Unpacked unpacked = gunzip(plain, chunk_bytes);
      EXPECT_TRUE(unpacked.result);
      EXPECT_EQ(unpacked.bytes, plain);
      EXPECT_FALSE(unpacked.is_gzip);
    }
  }
}

TEST(Gunzip, HasNothingToSayAboutEmptyInput) {
  EXPECT_TRUE(gunzip({}, 1).result);
  EXPECT_TRUE(gunzip(gzip({}), 1).result);
}

TEST(Gunzip, UndoesOneOrManyMembersInChunksOfAnySize) {
  const Bytes first = noise(300'000);  // more than an output block
  const Bytes second = hex("'second'");
  const Bytes packed = join({gzip(first), gzip({}), gzip(second)});
  for (const std::size_t chunk_bytes : {std::size_t{1}, std::size_t{1000}, packed.size()}) {
    const Unpacked unpacked = gunzip(packed, chunk_bytes);
    ASSERT_TRUE(unpacked.result) << unpacked.result.error().message;
    EXPECT_TRUE(unpacked.is_gzip);
    EXPECT_EQ(unpacked.bytes, join({first, second}));
  }
}

TEST(Gunzip, TakesZeroPaddingBehindAMember) {
  const Bytes packed = join({gzip(hex("'a'")), Bytes(700, 0), gzip(hex("'b'")), Bytes(3, 0)});
  const Unpacked unpacked = gunzip(packed, 5);
  EXPECT_TRUE(unpacked.result);
  EXPECT_EQ(unpacked.bytes, hex("'ab'"));
}

TEST(Gunzip, RefusesWhatFollowsAMemberAndIsNone) {
  const Bytes member = gzip(hex("'a'"));
  const Unpacked unpacked = gunzip(join({member, hex("'x'")}), 1);
  ASSERT_FALSE(unpacked.result);
  EXPECT_EQ(unpacked.result.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(unpacked.result.error().offset, member.size());
  EXPECT_EQ(unpacked.bytes, hex("'a'"));
}

TEST(Gunzip, KeepsWhatWasInflatedBeforeACutAtEveryByte) {
  const Bytes plain = noise(3000);
  const Bytes packed = gzip(plain);
  for (std::size_t length = 2; length < packed.size(); ++length) {
    const Bytes cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(length));
    const Unpacked unpacked = gunzip(cut, 64);
    ASSERT_FALSE(unpacked.result);
    EXPECT_EQ(static_cast<int>(unpacked.result.error().code),
              static_cast<int>(ErrorCode::kTruncated));
    EXPECT_EQ(unpacked.result.error().offset, length);
    EXPECT_TRUE(std::equal(unpacked.bytes.begin(), unpacked.bytes.end(), plain.begin()));
  }
}

TEST(Gunzip, ReportsDamageWithAnOffsetInTheCompressedInput) {
  const Bytes packed = gzip(noise(3000));
  Bytes bad_check = packed;
  bad_check[packed.size() - 8] = static_cast<std::uint8_t>(bad_check[packed.size() - 8] ^ 0xff);
  const Unpacked unpacked = gunzip(bad_check, packed.size());
  ASSERT_FALSE(unpacked.result);
  EXPECT_EQ(unpacked.result.error().code, ErrorCode::kCorrupt);
  EXPECT_GE(unpacked.result.error().offset, packed.size() - 8);
  EXPECT_LE(unpacked.result.error().offset, packed.size());
  EXPECT_EQ(unpacked.bytes, noise(3000));

  Bytes bad_method = packed;
  bad_method[2] = 9;
  EXPECT_EQ(gunzip(bad_method, 1).result.error().code, ErrorCode::kCorrupt);
}

TEST(Gunzip, StopsWhenTheSinkDoesAndRemembersWhy) {
  int calls = 0;
  Gunzip reader([&](std::span<const std::uint8_t>) -> Result<void> {
    ++calls;
    return make_error(ErrorCode::kCancelled, "enough");
  });
  const Bytes packed = gzip(noise(400'000));
  EXPECT_EQ(reader.feed(packed).error().message, "enough");
  EXPECT_EQ(reader.feed(packed).error().message, "enough");
  EXPECT_EQ(reader.finish().error().message, "enough");
  EXPECT_EQ(calls, 1);
}

TEST(Gunzip, GivesTheDecoderTheTraceThatWasCompressed) {
  const Bytes plain = every_kind();
  const Bytes packed = join({gzip(Bytes(plain.begin(), plain.begin() + 100)),
                             gzip(Bytes(plain.begin() + 100, plain.end()))});
  Recorder recorder;
  Decoder decoder(recorder);
  Gunzip reader([&](std::span<const std::uint8_t> part) { return decoder.feed(part); });
  for (const std::uint8_t& byte : packed) {
    ASSERT_TRUE(reader.feed({&byte, 1}));
  }
  EXPECT_TRUE(reader.finish());
  EXPECT_TRUE(decoder.finish());
  EXPECT_EQ(recorder.lines, decode(plain).lines);
}

}  // namespace
}  // namespace dial9::format::test
