// Writes seeds for the decode target into a folder: traces that hold every frame and field type,
// whole, cut, damaged, concatenated and compressed. See corpus/README.md.
// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <cstdio>
#include <string>
#include <vector>

#include "format/encoder.h"
#include "format/test_support.h"

namespace {

using dial9::format::test::Bytes;
using dial9::format::test::hex;
using dial9::format::test::join;

Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  Bytes packed(deflateBound(&stream, static_cast<uLong>(plain.size())) + 32);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Runtime events as a service writes them: small, many, one stream a thread.
Bytes runtime_events() {
  using dial9::format::FieldType;
  dial9::format::Encoder out;
  for (std::uint64_t worker = 0; worker < 2; ++worker) {
    if (worker > 0) {
      out.new_stream();
    }
    out.schema(1, "PollStartEvent", true,
               {{"worker_id", FieldType::kVarint},
                {"local_queue", FieldType::kU8},
                {"task_id", FieldType::kVarint},
                {"spawn_loc", FieldType::kPooledString}});
    out.schema(2, "PollEndEvent", true, {{"worker_id", FieldType::kVarint}});
    out.schema(3, "WorkerUnparkEvent", true,
               {{"worker_id", FieldType::kVarint},
                {"cpu_time_ns", FieldType::kVarint},
                {"sched_wait_ns", FieldType::kVarint, true},
                {"tid", FieldType::kU32}});
    for (std::uint64_t poll = 0; poll < 4; ++poll) {
      out.begin(1, 20'000'000 * poll);
      out.varint(worker);
      out.u8(static_cast<std::uint8_t>(poll));
      out.varint(poll << 20);
      out.pooled_string("server.cc:42");
      out.begin(2, 20'000'000 * poll + 1500);
      out.varint(worker);
    }
    out.begin(3, 90'000'000);
    out.varint(worker);
    out.varint(123'456'789);
    out.present();
    out.varint(777);
    out.u32(4242);
  }
  return out.take();
}

bool write(const std::string& folder, const std::string& name, const Bytes& bytes) {
  std::FILE* const file = std::fopen((folder + "/" + name).c_str(), "wb");
  if (file == nullptr) {
    std::perror(name.c_str());
    return false;
  }
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && is_written;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_make_seeds FOLDER\n", stderr);
    return 2;
  }
  const Bytes every = dial9::format::test::every_kind();
  const Bytes runtime = runtime_events();
  Bytes damaged = every;
  damaged[damaged.size() / 2] ^= 0x40;
  const Bytes header = hex(dial9::format::test::kHeader);
  const std::pair<const char*, Bytes> seeds[] = {
      {"every_kind", every},
      {"every_kind_cut", Bytes(every.begin(), every.end() - 30)},
      {"every_kind_damaged", damaged},
      {"runtime", runtime},
      {"runtime_gzip", gzip(runtime)},
      {"two_members", join({gzip(every), gzip(runtime)})},
      {"padded_member", join({gzip(header), Bytes(9, 0)})},
      {"header", header},
      {"old_version", hex("54 52 43 00 02")},
      {"redefined", join({header, hex("01 01 00 01 00 'a' 00 00 00 01 01 00 01 00 'b' 00 00 00")})},
      {"late_annotation", join({header, hex("06 05 01 00 00 00 01 00 'k' 01 00 00 00 'v'")})},
  };
  for (const auto& [name, bytes] : seeds) {
    if (!write(argv[1], name, bytes)) {
      return 1;
    }
  }
  return 0;
}
