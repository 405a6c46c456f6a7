// The source that tells which modules are loaded where, and when that changed: in each segment, for
// the stacks of all other sources. Strongest property: it holds none of our locks while it asks the
// loader, and doesn't ask at all where the loader's lock has lost its owner in a fork. Without a
// change a look costs under 1 µs, ten times a second. Spec: docs/spec/modules.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "recorder/module_stream.h"
#include "sources/loaded_modules.h"

namespace dial9::internal {

// Added once, by whoever records stacks; never removed. Any thread. False: there are too many
// sources.
bool require_module_table() noexcept;

// Where the modules come from; injected in tests.
class ModuleReader {
 public:
  virtual ~ModuleReader() = default;
  virtual bool can_read() = 0;
  virtual LoadCounts counts() = 0;
  virtual LoadedModules modules() = 0;
  virtual std::uint64_t now_ns() = 0;  // the recorder's clock
};

class ModuleTable final : public StreamSource {
 public:
  explicit ModuleTable(ModuleReader& reader) : reader_(reader) {}
  ~ModuleTable() override;

  // StreamSource. Metadata is none, so that all of it runs on the collector's thread.
  std::uint64_t attend(std::uint64_t now_ns) override;
  void rest() override {}
  std::vector<SourceStream> take() override;
  std::vector<std::uint8_t> opening() override;
  std::uint64_t metadata_version() const override { return 0; }
  Metadata metadata() const override { return {}; }

 private:
  // One a process: the child of a fork leaves its parent's, which may be half written.
  struct State {
    pid_t pid = 0;
    std::uint64_t next_look_ns = 0;  // by the collector's clock
    bool is_known = false;
    LoadedModules now;
    ModuleSetTimes times{.epoch = 0};
    std::uint64_t held_ns = 0;  // `now` was seen last
    std::vector<SourceStream> fresh;
  };
  State& state();
  void look(State& state);

  ModuleReader& reader_;
  State* state_ = nullptr;
};

}  // namespace dial9::internal
