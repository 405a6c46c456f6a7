// See run_files.h.
// Strongest property: every path that is read was found below the root after resolving links.
// Spec: docs/spec/http_api.md, "Runs".
// SPDX-License-Identifier: Apache-2.0
#include "server/run_files.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "storage/trace_files.h"

namespace dial9::server {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kNsPerMs = 1'000'000;

// `root` is canonical. True for the root itself and what really lies below it.
bool is_inside(const fs::path& root, const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return false;
  const auto [end, ignored] = std::ranges::mismatch(root, real);
  return end == root.end();
}

class FileRuns final : public RunSource {
 public:
  FileRuns(fs::path root, bool is_file) : root_(std::move(root)), is_file_(is_file) {}

  std::string root() const override { return root_.filename().string(); }

  Result<std::vector<RunInfo>> list() override {
    const fs::path directory = is_file_ ? root_.parent_path() : root_;
    auto found = is_file_ ? Result<std::vector<storage::RunInfo>>(one_file())
                          : storage::list_runs(directory.string());
    if (!found) return std::unexpected(found.error());
    std::vector<RunInfo> out;
    std::set<std::string> ids;
    for (const storage::RunInfo& run : *found) {
      if (!is_inside(root_, run.path)) continue;
      RunInfo info;
      info.name = run.name;
      info.id = run.name;
      while (!ids.insert(info.id).second) info.id += "~";
      info.bytes = run.size_bytes;
      info.modified_ms = run.last_modified_unix_ns / kNsPerMs;
      info.is_live = run.has_active_segment;
      const bool is_segment = !run.is_file || storage::parse_segment_name(run.name).state !=
                                                  storage::SegmentState::kLoose;
      if (is_segment) info.is_sealed = !run.has_active_segment;
      add_files(run, info);
      out.push_back(std::move(info));
    }
    return out;
  }

  Result<void> read(const RunInfo& run, std::size_t file,
                    const std::function<bool(std::span<const std::uint8_t>)>& take) override {
    const std::string& path = run.files.at(file).path;
    if (!is_inside(root_, path)) {
      return make_error(ErrorCode::kPermission,
                        "'" + run.files[file].name + "' now leads out of the served directory");
    }
    bool is_stopped = false;
    const auto sink = [&](std::span<const std::uint8_t> bytes) -> Result<void> {
      if (take(bytes)) return {};
      is_stopped = true;
      return make_error(ErrorCode::kCancelled, "stopped");
    };
    const auto read = storage::read_file(path, sink);
    if (!read && !is_stopped) return std::unexpected(read.error());
    return {};
  }

 private:
  // Its size, time and state as they are now; none once it is gone.
  std::vector<storage::RunInfo> one_file() const {
    const auto expansion = storage::expand_path(root_.string());
    std::error_code error;
    if (!expansion || !fs::is_regular_file(root_, error)) return {};
    const storage::SegmentFile& file = expansion->files.front();
    storage::RunInfo run;
    run.path = root_.string();
    run.name = root_.filename().string();
    run.is_file = true;
    run.has_active_segment = file.state == storage::SegmentState::kActive;
    run.segment_count = 1;
    run.size_bytes = file.size_bytes;
    run.first_modified_unix_ns = file.modified_unix_ns;
    run.last_modified_unix_ns = file.modified_unix_ns;
    return {run};
  }

  void add_files(const storage::RunInfo& run, RunInfo& info) const {
    if (run.is_file) {
      info.files.push_back({run.name, run.path, run.size_bytes});
      return;
    }
    const auto expansion = storage::expand_path(run.path);
    if (!expansion) return;  // it went away between the two looks
    for (const storage::SegmentFile& file : expansion->files) {
      // The run's directory is inside; only a link in it could lead out. (read() looks again.)
      std::error_code error;
      if (fs::is_symlink(fs::symlink_status(file.path, error)) && !is_inside(root_, file.path)) {
        continue;
      }
      info.files.push_back({fs::path(file.path).filename().string(), file.path, file.size_bytes});
    }
  }

  fs::path root_;
  bool is_file_;
};

}  // namespace

Result<std::unique_ptr<RunSource>> runs_in(const std::string& path) {
  std::error_code error;
  const fs::path root = fs::canonical(path, error);
  if (error == std::errc::permission_denied) {
    return make_error(ErrorCode::kPermission, "'" + path + "' may not be read: check its rights");
  }
  if (error) {
    return make_error(ErrorCode::kNotFound, "cannot open '" + path + "': " + error.message() +
                                                "; give a trace file, the directory of a run, or "
                                                "a directory that holds runs");
  }
  const bool is_file = fs::is_regular_file(root, error);
  if (!is_file && !fs::is_directory(root, error)) {
    return make_error(ErrorCode::kNotFound,
                      "'" + path + "' is neither a directory nor a trace file; give one of them");
  }
  return std::make_unique<FileRuns>(root, is_file);
}

}  // namespace dial9::server
