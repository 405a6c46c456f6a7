// See function_names.h. A file is opened for one piece of its table and closed again; one that was
// written to in between names nothing.
// SPDX-License-Identifier: Apache-2.0
#include "sources/function_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

#include "dial9/internal/clock.h"
#include "dial9/source.h"
#include "recorder/guarded_fd.h"
#include "recorder/no_exception.h"
#include "recorder/own_cost.h"
#include "recorder/seen_code.h"
#include "sources/loaded_modules.h"
#include "sources/module_table.h"
#include "symbolize/demangle.h"
#include "symbolize/symbol_scan.h"
#include "unwind/loader_probe.h"
#include "unwind/module_scan.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kStepNs = 100'000'000;
constexpr std::uint64_t kStepBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kCostFactor = 500;  // so much longer than a step it waits
constexpr std::uint64_t kAtEndBytes = std::uint64_t{16} << 20;  // of tables, as recording ends
constexpr const char* kOwnFile = "/proc/self/exe";              // also where it is deleted
constexpr std::size_t kMostOfAJob = 1024;                       // addresses: a name of 4 KiB each
constexpr std::size_t kNamesAStep = 100;
constexpr std::size_t kMostUnfoldedBytes = 65'536;  // of a name; else it stays mangled

// What is told in shortfall().
constexpr std::uint32_t kNamesFull = 1;
constexpr std::uint32_t kAddressesFull = 2;
constexpr std::uint32_t kNotOpened = 4;
constexpr std::uint32_t kEndedEarly = 8;

// None: see errno.
GuardedFd open_file(const std::string& path) {
  GuardedFd fd = GuardedFd::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd) fd.move_up();
  return fd;
}

// Of descriptors or memory.
bool is_lack(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}

}  // namespace

struct FunctionNames::Part {
  ModuleRecord module;
  std::vector<std::uint64_t> wanted;  // addresses of the process
};

struct FunctionNames::Job {
  std::string path;
  std::uint64_t bias = 0;
  symbolize::FileStamp stamp;
  symbolize::SymbolScan scan;
  std::vector<symbolize::SymbolScan::Function> found;  // that have no name told so far
  bool is_read = false;
};

struct FunctionNames::State {
  const pid_t pid = ::getpid();
  std::uint64_t next_ns = 0;
  std::uint64_t segment = 1;
  std::uint64_t end_left_ns = 0;   // to read in as recording ends
  std::uint64_t pieces = 0;        // of tables, that were read
  std::uint32_t failed_opens = 0;  // in a row
  bool is_ending = false;
  bool is_full = false;  // of names
  std::optional<LoadCounts> counts;
  std::vector<Part> parts;  // by address
  std::optional<Job> job;
  std::unordered_set<std::uint64_t> asked;      // without an answer so far
  std::map<std::uint64_t, Function> functions;  // by `begin`
  std::size_t name_bytes = 0;
  std::vector<FunctionRecord> fresh;
};

FunctionNames::~FunctionNames() {
  if (state_ != nullptr && state_->pid == ::getpid()) delete state_;
}

FunctionNames::State& FunctionNames::state() {
  if (state_ == nullptr || state_->pid != ::getpid()) {
    state_ = new State;
    shortfalls_ = 0;
  }
  return *state_;
}

// Where a reader can't know that a module was exchanged for another, its functions have no names.
void FunctionNames::look_at_modules(State& state) {
  if (!unwind::does_loader_answer()) return;
  const LoadCounts counts = load_counts();
  if (state.counts == counts) return;
  const unwind::ModuleTable table = unwind::scan_modules();
  LoadedModules loaded = loaded_modules();
  std::vector<Part> parts;
  for (ModuleRecord& module : loaded.modules) {
    const bool is_file = module.path.starts_with('/') && !module.build_id.empty();
    const bool is_kept =
        std::any_of(table.modules.begin(), table.modules.end(), [&](const auto& at) {
          return at.stamp == 0 && at.begin < module.end && at.end > module.begin;
        });
    if (!is_file || !is_kept) continue;
    Part& part = parts.emplace_back();
    part.module = std::move(module);
    for (Part& before : state.parts) {
      if (before.module == part.module) part.wanted = std::move(before.wanted);
    }
  }
  state.parts = std::move(parts);
  state.counts = counts;
}

void FunctionNames::tell(State& state, Function& function) {
  if (std::exchange(function.told, state.segment) == state.segment) return;
  state.fresh.push_back(function.record);
}

// What was seen has a name, or is asked for once.
void FunctionNames::sort_out(State& state) {
  const std::vector<std::uint64_t> seen = take_seen_code();
  if (seen.empty()) return;
  look_at_modules(state);
  for (const std::uint64_t address : seen) {
    const auto after = state.functions.upper_bound(address);
    if (after != state.functions.begin()) {
      Function& function = std::prev(after)->second;
      if (address - function.record.begin < function.record.bytes) {
        tell(state, function);
        continue;
      }
    }
    if (state.is_full) continue;
    const auto part = std::find_if(state.parts.begin(), state.parts.end(), [&](const Part& one) {
      return address >= one.module.begin && address < one.module.end;
    });
    if (part == state.parts.end() || state.asked.contains(address)) continue;
    if (state.asked.size() >= kMostAddresses) {
      fall_short(kAddressesFull);
      continue;
    }
    state.asked.insert(address);
    part->wanted.push_back(address);
  }
}

// After a lack that may pass: at most so often in a row.
bool FunctionNames::may_try_again(State& state) {
  if (++state.failed_opens < kMostFailedOpens) return true;
  state.failed_opens = 0;
  fall_short(kNotOpened);
  return false;
}

// What is asked of one module, as far as a job has room for it.
void FunctionNames::begin_job(State& state, Part& part) {
  const std::size_t rest = part.wanted.size() - std::min(part.wanted.size(), kMostOfAJob);
  std::vector<std::uint64_t> wanted(part.wanted.begin() + static_cast<std::ptrdiff_t>(rest),
                                    part.wanted.end());
  for (std::uint64_t& address : wanted) address -= part.module.bias;
  std::sort(wanted.begin(), wanted.end());
  for (const std::string& path : {part.module.path, std::string(kOwnFile)}) {
    const GuardedFd fd = open_file(path);
    const bool is_lacking = !fd && is_lack(errno);
    if (is_lacking && may_try_again(state)) return;
    if (is_lacking) break;
    const auto stamp = fd ? symbolize::stamp_of(fd.get()) : std::nullopt;
    if (!stamp) continue;
    state.failed_opens = 0;
    auto scan = symbolize::SymbolScan::open(symbolize::reader_of(fd.get()), stamp->bytes, wanted);
    if (!scan || scan->build_id() != part.module.build_id) continue;
    state.job = Job{path, part.module.bias, *stamp, std::move(*scan), {}, false};
    break;
  }
  part.wanted.resize(rest);
}

void FunctionNames::read_some(State& state) {
  Job& job = *state.job;
  const GuardedFd fd = open_file(job.path);
  if (!fd && is_lack(errno) && may_try_again(state)) return;
  state.failed_opens = 0;
  ++state.pieces;
  if (!fd || !job.scan.step(symbolize::reader_of(fd.get()), kStepBytes) ||
      symbolize::stamp_of(fd.get()) != job.stamp) {
    state.job.reset();
  } else if (job.scan.is_done()) {
    job.found = job.scan.take();
    job.is_read = true;
  }
}

void FunctionNames::name_some(State& state) {
  Job& job = *state.job;
  for (std::size_t i = 0; i < kNamesAStep && !job.found.empty() && !state.is_full; ++i) {
    const symbolize::SymbolScan::Function found = std::move(job.found.back());
    job.found.pop_back();
    if (state.functions.contains(found.begin + job.bias)) continue;  // by another address of it
    Function function;
    function.record = {found.begin + job.bias, found.bytes,
                       symbolize::demangle(found.name, kMostUnfoldedBytes)};
    state.is_full = function.record.name.size() > kMostNameBytes - state.name_bytes;
    if (state.is_full) break;
    state.name_bytes += function.record.name.size();
    const std::uint64_t begin = function.record.begin;
    tell(state, state.functions.try_emplace(begin, std::move(function)).first->second);
  }
  if (job.found.empty()) state.job.reset();
  if (!state.is_full) return;
  fall_short(kNamesFull);
  state.job.reset();
  for (Part& part : state.parts) part.wanted = {};
}

bool FunctionNames::work(State& state) {
  if (state.job) {
    state.job->is_read ? name_some(state) : read_some(state);
    return true;
  }
  const auto part = std::find_if(state.parts.begin(), state.parts.end(),
                                 [](const Part& one) { return !one.wanted.empty(); });
  if (part == state.parts.end()) return false;
  begin_job(state, *part);
  return true;
}

std::uint64_t FunctionNames::attend(std::uint64_t now_ns) {
  State& own = state();
  own.is_ending = false;
  own.end_left_ns = most_end_ns_;
  shortfalls_.fetch_and(~kEndedEarly, std::memory_order_relaxed);
  want_seen_code(true);
  if (now_ns < own.next_ns) return own.next_ns;
  const auto cpu_now_ns = cpu_now_ns_ == nullptr ? thread_cpu_now_ns : cpu_now_ns_;
  const std::uint64_t before_ns = cpu_now_ns();
  sort_out(own);
  work(own);
  const std::uint64_t cost_ns = cpu_now_ns() - before_ns;
  // A tenth of a budget of the user's at most.
  const double by_budget = budget_ns_ == 0 ? 0 : 1e10 / budget_ns_;
  const std::uint64_t factor = std::max(kCostFactor, static_cast<std::uint64_t>(by_budget));
  own.next_ns = now_ns + std::max(kStepNs, cost_ns * factor);
  return own.next_ns;
}

void FunctionNames::rest() { state().is_ending = true; }

// As recording ends, what is asked for is answered within a bound.
void FunctionNames::finish(State& state) {
  sort_out(state);
  want_seen_code(false);
  const std::uint64_t begin_ns = kernel_now_ns();
  const std::uint64_t most_pieces = state.pieces + kAtEndBytes / kStepBytes;
  std::uint64_t spent_ns = 0;
  bool has_more = true;
  while (has_more && spent_ns < state.end_left_ns && state.pieces < most_pieces) {
    has_more = work(state) && state.failed_opens == 0;
    spent_ns = kernel_now_ns() - begin_ns;
  }
  state.end_left_ns -= std::min(state.end_left_ns, spent_ns);
  const bool is_done = !state.job && std::all_of(state.parts.begin(), state.parts.end(),
                                                 [](const Part& p) { return p.wanted.empty(); });
  if (!is_done) fall_short(kEndedEarly);
}

std::vector<SourceStream> FunctionNames::take() {
  State& own = state();
  if (own.is_ending) finish(own);
  std::vector<SourceStream> streams;
  const std::vector<FunctionRecord> fresh = std::exchange(own.fresh, {});
  if (!fresh.empty()) streams.push_back(encode_functions(fresh, now_ns()));
  return streams;
}

std::string FunctionNames::shortfall() const {
  const std::uint32_t of = shortfalls_.load(std::memory_order_relaxed);
  std::string text;
  const auto add = [&](std::uint32_t one, const char* what) {
    if ((of & one) == 0) return;
    if (!text.empty()) text += "; ";
    text += what;
  };
  add(kNamesFull, "functions seen later have no names: those of earlier ones take all of 1 MiB");
  add(kAddressesFull, "functions seen later have no names: 65,536 addresses were asked for");
  add(kNotOpened, "some functions have no names: no descriptor to read their file");
  add(kEndedEarly, "some functions have no names: recording ended before their file was read");
  return text;
}

// A segment has the names of the code that its own samples have.
std::vector<std::uint8_t> FunctionNames::opening() {
  ++state().segment;
  return {};
}

}  // namespace dial9::internal

namespace dial9 {
namespace {

Status start() {
  static std::atomic<bool> is_added{false};
  if (is_added.exchange(true)) return {};
  static auto* const names = new internal::FunctionNames;
  if (internal::require_module_table() && internal::add_stream_source(names)) return {};
  is_added = false;
  return Status::failure("function names: too many sources");
}

}  // namespace

Status add_function_names() noexcept {
  return internal::no_exception(start, internal::out_of_memory());
}

}  // namespace dial9
