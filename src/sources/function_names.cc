// See function_names.h. A file is opened for one piece of its table and closed again; one that was
// written to in between names nothing.
// SPDX-License-Identifier: Apache-2.0
#include "sources/function_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/unique_fd.h"
#include "dial9/internal/clock.h"
#include "dial9/source.h"
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

UniqueFd open_file(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
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
};

struct FunctionNames::State {
  const pid_t pid = ::getpid();
  std::uint64_t next_ns = 0;
  std::uint64_t segment = 1;
  bool is_ending = false;
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
  if (state_ == nullptr || state_->pid != ::getpid()) state_ = new State;
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
    if (state.asked.size() >= kMostAddresses || state.name_bytes >= kMostNameBytes) continue;
    const auto part = std::find_if(state.parts.begin(), state.parts.end(), [&](const Part& one) {
      return address >= one.module.begin && address < one.module.end;
    });
    if (part == state.parts.end() || !state.asked.insert(address).second) continue;
    part->wanted.push_back(address);
  }
}

// The next module of which something is asked.
void FunctionNames::begin_job(State& state) {
  for (Part& part : state.parts) {
    std::vector<std::uint64_t> wanted = std::exchange(part.wanted, {});
    if (wanted.empty()) continue;
    for (std::uint64_t& address : wanted) address -= part.module.bias;
    std::sort(wanted.begin(), wanted.end());
    for (const std::string& path : {part.module.path, std::string(kOwnFile)}) {
      const UniqueFd fd = open_file(path);
      const auto stamp = fd ? symbolize::stamp_of(fd.get()) : std::nullopt;
      if (!stamp) continue;
      auto scan = symbolize::SymbolScan::open(symbolize::reader_of(fd.get()), stamp->bytes, wanted);
      if (!scan || scan->build_id() != part.module.build_id) continue;
      state.job = Job{path, part.module.bias, *stamp, std::move(*scan)};
      return;
    }
  }
}

void FunctionNames::finish_job(State& state) {
  for (symbolize::SymbolScan::Function& found : state.job->scan.take()) {
    Function function;
    function.record = {found.begin + state.job->bias, found.bytes, symbolize::demangle(found.name)};
    if (function.record.name.size() > kMostNameBytes - state.name_bytes) continue;
    state.name_bytes += function.record.name.size();
    const auto [at, is_new] =
        state.functions.try_emplace(function.record.begin, std::move(function));
    if (is_new) tell(state, at->second);
  }
  state.job.reset();
}

bool FunctionNames::work(State& state) {
  if (!state.job) begin_job(state);
  if (!state.job) return false;
  Job& job = *state.job;
  const UniqueFd fd = open_file(job.path);
  if (!fd || !job.scan.step(symbolize::reader_of(fd.get()), kStepBytes) ||
      symbolize::stamp_of(fd.get()) != job.stamp) {
    state.job.reset();
  } else if (job.scan.is_done()) {
    finish_job(state);
  }
  return true;
}

std::uint64_t FunctionNames::attend(std::uint64_t now_ns) {
  State& own = state();
  own.is_ending = false;
  want_seen_code(true);
  if (now_ns < own.next_ns) return own.next_ns;
  const std::uint64_t before_ns = thread_cpu_now_ns();
  work(own);
  const std::uint64_t cost_ns = thread_cpu_now_ns() - before_ns;
  // A tenth of a budget of the user's at most.
  const double by_budget = budget_ns_ == 0 ? 0 : 1e10 / budget_ns_;
  const std::uint64_t factor = std::max(kCostFactor, static_cast<std::uint64_t>(by_budget));
  own.next_ns = now_ns + std::max(kStepNs, cost_ns * factor);
  return own.next_ns;
}

void FunctionNames::rest() { state().is_ending = true; }

// As recording ends, what is asked for is answered within a bound.
std::vector<SourceStream> FunctionNames::take() {
  State& own = state();
  sort_out(own);
  if (own.is_ending) {
    for (std::uint64_t done = 0; done < kAtEndBytes && work(own); done += kStepBytes) {
    }
    want_seen_code(false);
  }
  std::vector<SourceStream> streams;
  const std::vector<FunctionRecord> fresh = std::exchange(own.fresh, {});
  if (!fresh.empty()) streams.push_back(encode_functions(fresh, now_ns()));
  return streams;
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
