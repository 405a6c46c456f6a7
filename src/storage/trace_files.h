// Finds and reads traces on disk: what a user's path stands for (a file, a run, a directory of
// runs), in the order in which it was recorded, and the bytes of a file in chunks. Never loads a
// whole file, never reads what isn't a regular file, never waits on a pipe.
// Spec: docs/spec/trace_format.md, "Files".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/decoder.h"

namespace dial9::storage {

enum class SegmentState : std::uint8_t {
  kSealed,      // trace.{n}.bin
  kCompressed,  // trace.{n}.bin.gz
  kActive,      // trace.{n}.bin.active: still being written, or left by a process that died
  kLoose,       // any other file that the user named
};

struct SegmentFile {
  std::string path;
  SegmentState state = SegmentState::kLoose;
  std::uint64_t index = 0;  // the n of its name; 0 if loose
  std::uint64_t size_bytes = 0;
  std::int64_t modified_unix_ns = 0;
};

// What a file name says: its state and n. A name that isn't one of a segment is kLoose. Names of
// other things in a run directory (`.lock`, `….partial`, mappings) are kLoose too.
struct SegmentName {
  SegmentState state = SegmentState::kLoose;
  std::uint64_t index = 0;
};
SegmentName parse_segment_name(std::string_view file_name);

// One recording: a directory of segments, or a loose trace file.
struct RunInfo {
  std::string path;
  std::string name;  // last part of the path: the boot id, or the file's name
  bool is_file = false;
  bool has_active_segment = false;
  std::uint64_t segment_count = 0;
  std::uint64_t size_bytes = 0;  // on disk
  std::int64_t first_modified_unix_ns = 0;
  std::int64_t last_modified_unix_ns = 0;
};

// The runs in `directory`, newest first (by last change, then name): the directory itself if it
// holds segments, its sub-directories that do (one level), and files in it that end in .bin or
// .bin.gz. Empty if there are none. Symbolic links are followed; what can't be looked at is left
// out.
// Errors: kNotFound (also for what is no directory), kPermission.
// Cost: one stat a file.
Result<std::vector<RunInfo>> list_runs(const std::string& directory);

struct Expansion {
  std::vector<SegmentFile> files;  // in recording order; never empty
  // Runs in the same directory that were not taken, newest first.
  std::vector<std::string> other_runs;
};

// What `path` stands for:
// - a file: itself, whatever its name;
// - a directory with segments: those, by n, an active one last (unless it is empty so far); of a
//   segment that is there plain and compressed (a crash between writing the one and removing the
//   other), the plain one;
// - a directory of runs: its newest run. Runs that lie beside what was taken are named in
//   `other_runs`, so that the caller can say so.
// Errors: kNotFound (nothing there, or no trace in it), kPermission, kInvalidArgument (neither file
// nor directory); each message names the cure.
Result<Expansion> expand_path(const std::string& path);

// How far a read is. `size_bytes` is the size when it began; an active file may grow beyond it.
struct ReadProgress {
  std::uint64_t read_bytes;
  std::uint64_t size_bytes;
};
using ByteSink = std::function<Result<void>(std::span<const std::uint8_t>)>;
using ProgressSink = std::function<void(const ReadProgress&)>;

inline constexpr std::size_t kReadChunkBytes = 256 * 1024;

// Reads the file from start to end and gives `sink` chunks of at most kReadChunkBytes, valid
// during the call; `progress` (may be empty) is called after each. Returns the bytes read. A
// segment that was sealed or compressed since it was listed is found under its new name.
// Errors: of the system, of the sink (returned as it is), kInvalidArgument for what is no regular
// file. Memory: one chunk. Blocks on the disk.
Result<std::uint64_t> read_file(const std::string& path, const ByteSink& sink,
                                const ProgressSink& progress = {});

// How the decode of one file ended.
struct FileDecode {
  format::DecodeStats stats;     // what was kept
  std::uint64_t read_bytes = 0;  // of the file, compressed or not
  bool is_gzip = false;
  Result<void> outcome;  // kTruncated, kCorrupt, kUnsupported: after what was kept
};

// read_file, gunzip where the bytes say so, and a Decoder with `visitor`, to the end of the file.
// Errors: those of read_file that aren't the input's fault (FileDecode::outcome has those that are)
// and kCancelled if the visitor said so.
Result<FileDecode> decode_file(const std::string& path, format::Visitor& visitor,
                               const ProgressSink& progress = {});

}  // namespace dial9::storage
