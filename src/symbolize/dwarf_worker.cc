// See dwarf_worker.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/os_error.h"
#include "symbolize/debuginfod.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/frame_bytes.h"
#include "symbolize/worker_messages.h"

namespace dial9::symbolize {
namespace {

constexpr std::size_t kMostKeptBytes = 20 << 20;
constexpr rlim_t kMostCpuSeconds = 300;
constexpr std::size_t kMostFiles = 8192;

// ---- The worker's side.

struct OpenFile {
  UniqueFd fd;
  FileStamp stamp;
  std::string build_id;
  DwarfFile dwarf;
};

std::string build_id_of(int fd) {
  const FileReader reader = reader_of(fd);
  const auto elf = ElfFile::open(reader, regular_file_bytes(fd).value_or(0));
  return elf ? elf->build_id() : "";
}

// The file may be another one than the asker saw.
Result<OpenFile> open_file(const std::string& path, const std::string& build_id) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return os_error(errno, "open", path);
  const auto stamp = stamp_of(fd.get());
  if (!stamp) return make_error(ErrorCode::kCorrupt, "it is no regular file");
  if (build_id_of(fd.get()) != build_id) return make_error(ErrorCode::kCorrupt, "it was replaced");
  auto dwarf = DwarfFile::open(fd.get(), kMostKeptBytes);
  if (!dwarf) return std::unexpected(dwarf.error());
  return OpenFile{std::move(fd), *stamp, build_id, std::move(*dwarf)};
}

// What was read of a file counts only if it is afterwards what it was before.
Result<void> check_unchanged(const OpenFile& file) {
  if (const std::string now = build_id_of(file.fd.get()); now != file.build_id) {
    return make_error(ErrorCode::kCorrupt,
                      "it was overwritten while it was read, and has build id " +
                          (now.empty() ? "none" : now) + ", not " + file.build_id);
  }
  if (stamp_of(file.fd.get()) != file.stamp) {
    return make_error(ErrorCode::kCorrupt, "it was written to while it was read");
  }
  return {};
}

void answer_open(ByteReader& request, std::vector<OpenFile>& files, ByteWriter& answer) {
  const std::string path = request.text();
  const std::string build_id = request.text();
  Result<OpenFile> file = files.size() < kMostFiles
                              ? open_file(path, build_id)
                              : make_error(ErrorCode::kLimit, "too many files");
  if (!file) return write_error(answer, file.error());
  files.push_back(std::move(*file));
  answer.u32(0);
  answer.u32(static_cast<std::uint32_t>(files.size() - 1));
}

using OnAddress = std::function<void(std::uint64_t)>;

void answer_frames(ByteReader& request, std::vector<OpenFile>& files, std::size_t most_bytes,
                   const OnAddress& before_address, ByteWriter& answer) {
  const std::uint32_t number = request.u32();
  const std::uint32_t count = request.u32();
  if (number >= files.size()) return request.fail();
  OpenFile& file = files[number];
  FrameTable table;
  for (std::uint32_t i = 0; i < count && request.is_whole(); ++i) {
    const std::uint64_t address = request.u64();
    if (!table.empty() && table.written_bytes() >= most_bytes) continue;
    note_progress(i + 1);
    if (before_address) before_address(address);
    table.add(address, file.dwarf.frames(address));
  }
  note_progress(0);
  if (const auto unchanged = check_unchanged(file); !unchanged) {
    return write_error(answer, unchanged.error());
  }
  answer.u32(0);
  table.write(answer);
}

void limit(__rlimit_resource resource, rlim_t most) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return;
  now.rlim_cur = std::min(now.rlim_cur, most);
  now.rlim_max = std::min(now.rlim_max, most);
  (void)::setrlimit(resource, &now);
}

// Of each file that is written.
void limit_files(rlim_t most_bytes) { limit(RLIMIT_FSIZE, most_bytes); }

void answer_fetch(ByteReader& request, ByteWriter& answer) {
  const std::string build_id = request.text();
  const std::string name = request.text();
  const std::uint64_t most_bytes = request.u64();
  const bool shows_progress = request.u32() != 0;
  limit_files(most_bytes);
  const auto path = fetch_by_library(build_id, name, most_bytes, shows_progress);
  if (!path) return write_error(answer, path.error());
  answer.u32(0);
  answer.text(*path);
}

void limit_itself() {
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  (void)::signal(SIGXFSZ, SIG_IGN);  // an error of write() instead
#if !defined(DIAL9_SANITIZED)        // their shadow is far larger
  constexpr rlim_t kMostMemoryBytes = rlim_t{1} << 30;
  limit(RLIMIT_DATA, kMostMemoryBytes);
#endif
  limit(RLIMIT_CPU, kMostCpuSeconds);
  limit(RLIMIT_CORE, 0);
}

}  // namespace

int run_dwarf_worker(std::size_t most_answer_bytes, const OnAddress& before_address) {
  open_notebook();
  limit_itself();
  std::vector<OpenFile> files;
  for (Bytes bytes; receive_question(bytes);) {
    ByteReader request(bytes);
    ByteWriter answer;
    switch (request.u32()) {
      case kOpenQuestion:
        limit_files(0);
        answer_open(request, files, answer);
        break;
      case kFramesQuestion:
        answer_frames(request, files, most_answer_bytes, before_address, answer);
        break;
      case kFetchQuestion:
        answer_fetch(request, answer);
        break;
      default:
        return 1;
    }
    if (!request.is_whole() || !send_answer(answer.bytes())) return 1;
  }
  return 0;
}

// ---- The asker's side.

Result<std::uint32_t> DwarfWorker::open_in_worker(const File& file) {
  if (const auto started = process_.start(); !started) return std::unexpected(started.error());
  const Result<Bytes> bytes =
      process_.ask(open_question(file.path, file.build_id), options_.open_ms);
  if (!bytes) return std::unexpected(bytes.error());
  WorkerAnswer<std::uint32_t> answer = read_open_answer(*bytes);
  if (!answer.makes_sense) process_.stop();
  return std::move(answer.value);
}

Result<std::uint32_t> DwarfWorker::open(const std::string& path, const std::string& build_id) {
  File file{path, build_id};
  const Result<std::uint32_t> number = open_in_worker(file);
  if (!number) return std::unexpected(number.error());
  file.process = process_.number();
  file.number = *number;
  files_.push_back(std::move(file));
  return static_cast<std::uint32_t>(files_.size() - 1);
}

Result<void> DwarfWorker::ask(std::uint32_t number, std::span<const std::uint64_t> addresses) {
  File& file = files_[number];
  if (file.process != process_.number()) {  // another file ended the one that had it
    const Result<std::uint32_t> again = open_in_worker(file);
    if (!again) return std::unexpected(again.error());
    file.process = process_.number();
    file.number = *again;
  }
  return process_.send(frames_question(file.number, addresses), options_.look_ms);
}

Result<FrameTable> DwarfWorker::answer(std::span<const std::uint64_t> asked) {
  culprit_.reset();
  const Result<Bytes> bytes = process_.receive(options_.look_ms);
  if (!bytes) {
    const std::uint32_t noted = process_.last_noted();
    if (noted != 0 && noted <= asked.size()) culprit_ = noted - 1;
    return std::unexpected(bytes.error());
  }
  WorkerAnswer<FrameTable> answer = read_frames_answer(*bytes, asked);
  if (!answer.makes_sense) process_.stop();
  return std::move(answer.value);
}

Result<FrameTable> DwarfWorker::frames(std::uint32_t number,
                                       std::span<const std::uint64_t> addresses) {
  if (const auto sent = ask(number, addresses); !sent) return std::unexpected(sent.error());
  return answer(addresses);
}

}  // namespace dial9::symbolize
