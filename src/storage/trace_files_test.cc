// What a path stands for, in which order, and what is said when it stands for nothing.
// SPDX-License-Identifier: Apache-2.0
#include "storage/trace_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "format/encoder.h"

namespace dial9::storage {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

// A directory that goes away with the test; files in it get the modification time that they are
// given.
class TraceFiles : public testing::Test {
 protected:
  TraceFiles() {
    std::string name = (fs::temp_directory_path() / "dial9-storage-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~TraceFiles() override { fs::remove_all(root_); }

  std::string at(const std::string& name) const { return root_ + "/" + name; }

  std::string make(const std::string& name, const std::string& content = "x",
                   std::int64_t modified_s = 1000) const {
    const std::string path = at(name);
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    const timespec times[2] = {{modified_s, 0}, {modified_s, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  }

  std::string root_;
};

Paths paths(const Result<Expansion>& expansion) {
  EXPECT_TRUE(expansion) << expansion.error().message;
  Paths list;
  for (const SegmentFile& file : expansion->files) {
    list.push_back(file.path);
  }
  return list;
}

TEST(SegmentName, TellsStatesAndNumbers) {
  EXPECT_EQ(parse_segment_name("trace.0.bin").state, SegmentState::kSealed);
  EXPECT_EQ(parse_segment_name("trace.12.bin.gz").state, SegmentState::kCompressed);
  EXPECT_EQ(parse_segment_name("trace.12.bin.gz").index, 12u);
  EXPECT_EQ(parse_segment_name("trace.7.bin.active").state, SegmentState::kActive);
  for (const char* other : {"trace.bin", "trace..bin", "trace.x.bin", "trace.-1.bin",
                            "trace.1.bin.x", "trace.1", "trace.1.bin.gz.partial", "xtrace.1.bin",
                            "", "trace.99999999999999999999.bin", "trace.07.bin", "trace.00.bin"}) {
    EXPECT_EQ(parse_segment_name(other).state, SegmentState::kLoose) << other;
    EXPECT_EQ(parse_segment_name(other).index, 0u) << other;
  }
}

TEST_F(TraceFiles, TakesAPlainFileAsItIs) {
  const std::string path = make("anything at all\n\xff", "12345");
  const Result<Expansion> expansion = expand_path(path);
  EXPECT_EQ(paths(expansion), Paths{path});
  EXPECT_EQ(expansion->files[0].state, SegmentState::kLoose);
  EXPECT_EQ(expansion->files[0].size_bytes, 5u);
  EXPECT_EQ(expansion->files[0].modified_unix_ns, 1'000'000'000'000);
}

TEST_F(TraceFiles, OrdersSegmentsByNumberWithTheActiveOneLast) {
  for (const char* name : {"trace.10.bin", "trace.9.bin.gz", "trace.2.bin", "trace.11.bin.active",
                           "trace.3.bin.gz.partial", ".lock", "notes.txt", "buffers.map"}) {
    make("run/" + std::string(name));
  }
  fs::create_directory(at("run/trace.5.bin"));  // no file
  EXPECT_EQ(paths(expand_path(at("run"))),
            (Paths{at("run/trace.2.bin"), at("run/trace.9.bin.gz"), at("run/trace.10.bin"),
                   at("run/trace.11.bin.active")}));
  EXPECT_EQ(paths(expand_path(at("run/")))[0], at("run/trace.2.bin"));
}

TEST_F(TraceFiles, TakesASegmentOnceWhereACrashLeftItTwice) {
  make("run/trace.1.bin.gz");
  make("run/trace.1.bin");
  make("run/trace.2.bin");
  EXPECT_EQ(paths(expand_path(at("run"))), (Paths{at("run/trace.1.bin"), at("run/trace.2.bin")}));
}

TEST_F(TraceFiles, LeavesOutAnActiveSegmentThatIsEmptySoFar) {
  const std::string sealed = make("run/trace.0.bin");
  make("run/trace.1.bin.active", "");
  EXPECT_EQ(paths(expand_path(at("run"))), Paths{sealed});
  EXPECT_FALSE(list_runs(root_)->front().has_active_segment);
  make("fresh/trace.0.bin.active", "");
  EXPECT_EQ(expand_path(at("fresh")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(list_runs(root_)->size(), 1u);
}

TEST_F(TraceFiles, TakesTheNewestRunAndNamesTheOthers) {
  make("abcd-1/trace.0.bin", "x", 3000);
  make("abcd-1/trace.1.bin", "x", 1000);
  make("wxyz-2/trace.0.bin", "x", 2000);
  make("wxyz-2/trace.1.bin.active", "x", 4000);
  make("empty/readme");
  const Result<Expansion> expansion = expand_path(root_);
  EXPECT_EQ(paths(expansion), (Paths{at("wxyz-2/trace.0.bin"), at("wxyz-2/trace.1.bin.active")}));
  EXPECT_EQ(expansion->other_runs, Paths{at("abcd-1")});
}

TEST_F(TraceFiles, PrefersADirectorysOwnSegmentsAndNamesTheRunsBelow) {
  make("trace.0.bin", "x", 1000);
  make("abcd-1/trace.0.bin", "x", 2000);
  const Result<Expansion> expansion = expand_path(root_);
  EXPECT_EQ(paths(expansion), Paths{at("trace.0.bin")});
  EXPECT_EQ(expansion->other_runs, Paths{at("abcd-1")});
}

TEST_F(TraceFiles, FollowsSymbolicLinksAndStepsOverBrokenOnes) {
  make("real/trace.0.bin");
  fs::create_directory(at("links"));
  fs::create_symlink(at("real/trace.0.bin"), at("links/trace.4.bin"));
  fs::create_symlink(at("nowhere"), at("links/trace.5.bin"));
  fs::create_symlink(at("links"), at("alias"));
  EXPECT_EQ(paths(expand_path(at("alias"))), Paths{at("alias/trace.4.bin")});
}

TEST_F(TraceFiles, ListsRunsWithSizeTimeAndCountNewestFirst) {
  make("old-1/trace.0.bin", "12345", 1000);
  make("old-1/trace.1.bin.gz", "123", 1500);
  make("new-2/trace.0.bin.active", "1", 3000);
  make("demo.bin", "1234", 2000);
  make("other.txt");
  const Result<std::vector<RunInfo>> runs = list_runs(root_);
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 3u);
  EXPECT_EQ((*runs)[0].name, "new-2");
  EXPECT_TRUE((*runs)[0].has_active_segment);
  EXPECT_EQ((*runs)[1].path, at("demo.bin"));
  EXPECT_TRUE((*runs)[1].is_file);
  EXPECT_EQ((*runs)[2].name, "old-1");
  EXPECT_EQ((*runs)[2].segment_count, 2u);
  EXPECT_EQ((*runs)[2].size_bytes, 8u);
  EXPECT_EQ((*runs)[2].first_modified_unix_ns, 1'000'000'000'000);
  EXPECT_EQ((*runs)[2].last_modified_unix_ns, 1'500'000'000'000);
  EXPECT_FALSE((*runs)[2].has_active_segment);
}

TEST_F(TraceFiles, SaysWhatToGiveWhereThereIsNothing) {
  const Result<Expansion> missing = expand_path(at("no/such"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("give a trace file"), std::string::npos);

  const Result<Expansion> no_trace = expand_path(root_);
  ASSERT_FALSE(no_trace);
  EXPECT_EQ(no_trace.error().code, ErrorCode::kNotFound);
  EXPECT_NE(no_trace.error().message.find("trace.{n}.bin"), std::string::npos);
  EXPECT_TRUE(list_runs(root_)->empty());

  EXPECT_EQ(expand_path("/dev/null").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(list_runs(make("file")).error().code, ErrorCode::kNotFound);
}

TEST_F(TraceFiles, ReadsInBoundedChunksWithProgress) {
  const std::string content(2 * kReadChunkBytes + 17, 'c');
  const std::string path = make("big", content);
  std::string seen;
  std::vector<std::uint64_t> progress;
  const Result<std::uint64_t> read = read_file(
      path,
      [&](std::span<const std::uint8_t> bytes) -> Result<void> {
        EXPECT_LE(bytes.size(), kReadChunkBytes);
        seen.append(bytes.begin(), bytes.end());
        return {};
      },
      [&](const ReadProgress& now) {
        progress.push_back(now.read_bytes);
        EXPECT_EQ(now.size_bytes, content.size());
      });
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, content.size());
  EXPECT_EQ(seen, content);
  EXPECT_EQ(progress,
            (std::vector<std::uint64_t>{kReadChunkBytes, 2 * kReadChunkBytes, content.size()}));
}

Result<void> ignore(std::span<const std::uint8_t> /*bytes*/) { return {}; }

TEST_F(TraceFiles, StopsReadingWhenTheSinkDoes) {
  const std::string path = make("big", std::string(3 * kReadChunkBytes, 'c'));
  int calls = 0;
  const Result<std::uint64_t> read = read_file(path, [&](auto) -> Result<void> {
    ++calls;
    return make_error(ErrorCode::kCancelled, "enough");
  });
  EXPECT_EQ(read.error().message, "enough");
  EXPECT_EQ(calls, 1);
}

TEST_F(TraceFiles, NeverWaitsOnAPipeOrReadsADirectory) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(at("pipe"), ignore).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_file(root_, ignore).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_file(at("none"), ignore).error().code, ErrorCode::kNotFound);
}

TEST_F(TraceFiles, FindsASegmentThatWasSealedOrCompressedSinceItWasListed) {
  make("run/trace.3.bin", "sealed");
  make("run/trace.4.bin.gz", "compressed");
  EXPECT_EQ(*read_file(at("run/trace.3.bin.active"), ignore), 6u);
  EXPECT_EQ(*read_file(at("run/trace.4.bin.active"), ignore), 10u);
  EXPECT_EQ(read_file(at("run/trace.5.bin.active"), ignore).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_file(at("run/loose.active"), ignore).error().code, ErrorCode::kNotFound);
}

struct Counter final : format::Visitor {
  std::uint64_t events = 0;
  std::uint64_t stop_at = ~std::uint64_t{0};
  bool on_event(const format::Event&) override { return ++events < stop_at; }
};

std::string trace_of(std::uint64_t events) {
  format::Encoder out;
  out.schema(1, "E", true, {});
  for (std::uint64_t i = 0; i < events; ++i) {
    out.begin(1, i);
  }
  return {out.data().begin(), out.data().end()};
}

TEST_F(TraceFiles, DecodesPlainAndCompressedFiles) {
  const std::string plain = make("trace.0.bin", trace_of(500));
  const std::string packed = at("trace.1.bin.gz");
  gzFile file = ::gzopen(packed.c_str(), "wb");
  const std::string content = trace_of(700);
  ASSERT_GT(::gzwrite(file, content.data(), static_cast<unsigned>(content.size())), 0);
  ::gzclose(file);

  Counter counter;
  const Result<FileDecode> first = decode_file(plain, counter);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->outcome);
  EXPECT_FALSE(first->is_gzip);
  EXPECT_EQ(first->stats.events, 500u);
  EXPECT_EQ(first->read_bytes, fs::file_size(plain));
  const Result<FileDecode> second = decode_file(packed, counter);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->outcome);
  EXPECT_TRUE(second->is_gzip);
  EXPECT_EQ(second->read_bytes, fs::file_size(packed));
  EXPECT_EQ(counter.events, 1200u);
}

TEST_F(TraceFiles, KeepsWhatADamagedFileHeldAndSaysWhere) {
  std::string content = trace_of(10);
  content += '\x02';
  Counter counter;
  const Result<FileDecode> cut = decode_file(make("cut", content), counter);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->outcome.error().code, ErrorCode::kTruncated);
  EXPECT_EQ(cut->outcome.error().offset, content.size() - 1);
  EXPECT_EQ(cut->stats.events, 10u);
  EXPECT_EQ(cut->read_bytes, content.size());

  const Result<FileDecode> empty = decode_file(make("empty", ""), counter);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->outcome.error().code, ErrorCode::kCorrupt);
}

TEST_F(TraceFiles, ReturnsTheSystemsErrorsAndTheVisitorsStop) {
  Counter counter;
  EXPECT_EQ(decode_file(at("none"), counter).error().code, ErrorCode::kNotFound);
  counter.stop_at = 3;
  EXPECT_EQ(decode_file(make("t", trace_of(10)), counter).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(counter.events, 3u);
}

}  // namespace
}  // namespace dial9::storage
