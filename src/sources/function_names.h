// The source that names functions while they are loaded, for readers that don't have the files: of
// the code that samplers saw, in each segment that has it, by the symbol tables of the program and
// the libraries that it started with. Strongest property: a name is that of the very file that is
// loaded (by build id), which can't be unloaded, so no address has another's. The collector's
// thread, in pieces of 256 KiB of a table, a 500th of a CPU at most, and 20 ms as recording ends;
// no descriptor between two.
// Spec: docs/spec/modules.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "recorder/function_stream.h"
#include "recorder/stream_source.h"

namespace dial9::internal {

class FunctionNames final : public StreamSource {
 public:
  static constexpr std::size_t kMostAddresses = 65'536;  // that were ever asked for
  static constexpr std::size_t kMostNameBytes = std::size_t{1} << 20;
  static constexpr std::uint64_t kMostEndNs = 20'000'000;
  static constexpr std::uint32_t kMostFailedOpens = 100;  // in a row, of want of descriptors

  // `most_end_ns`: of the time that passes, to read tables in as recording ends. `cpu_now_ns`: the
  // calling thread's CPU time, which the pace goes by; null: the system's.
  explicit FunctionNames(std::uint64_t most_end_ns = kMostEndNs,
                         std::uint64_t (*cpu_now_ns)() = nullptr)
      : most_end_ns_(most_end_ns), cpu_now_ns_(cpu_now_ns) {}
  ~FunctionNames() override;

  // StreamSource. Metadata is none, so that all of it runs on the collector's thread.
  std::uint64_t attend(std::uint64_t now_ns) override;
  void rest() override;
  std::vector<SourceStream> take() override;
  std::vector<std::uint8_t> opening() override;
  void set_budget(const GovernorBudget& budget) override { budget_ns_ = budget.max_cpu_ns; }
  std::string_view name() const override { return "function_names"; }
  std::string shortfall() const override;
  std::uint64_t metadata_version() const override { return 0; }
  Metadata metadata() const override { return {}; }

 private:
  struct Function {
    FunctionRecord record;
    std::uint64_t told = 0;  // in the segment of this number
  };
  struct Part;   // a module that can't be unloaded
  struct Job;    // a symbol table that is being read
  struct State;  // one a process: the child of a fork leaves its parent's

  State& state();
  void sort_out(State& state);
  void look_at_modules(State& state);
  // The next step of a job, or the begin of one. False: there is nothing more to do.
  bool work(State& state);
  void begin_job(State& state, Part& part);
  void read_some(State& state);
  void name_some(State& state);
  bool may_try_again(State& state);
  void finish(State& state);
  void fall_short(std::uint32_t of) { shortfalls_.fetch_or(of, std::memory_order_relaxed); }
  void tell(State& state, Function& function);

  State* state_ = nullptr;
  const std::uint64_t most_end_ns_;
  std::uint64_t (*const cpu_now_ns_)();
  double budget_ns_ = 0;  // of all recording, of a second; 0: none
  std::atomic<std::uint32_t> shortfalls_{0};
};

}  // namespace dial9::internal
