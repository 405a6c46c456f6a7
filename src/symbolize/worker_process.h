// A process of our own that answers questions, for what must not end or hold up the one that asks.
// Strongest property: the answer or an error comes within the time that was given, whatever the
// process does; one that failed is ended, and replaced at the next question, up to a number; one
// that can't be started for now is tried again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "symbolize/retry_pause.h"

namespace dial9::symbolize {

// Not thread-safe.
class WorkerProcess {
 public:
  // In all; one that was ended because it took too long counts for four.
  static constexpr int kMostStarts = 64;

  // The program and its arguments; `variables` ("NAME=value") go before those of this process.
  // Empty: it can't be started. `retry_ms`: the first pause after the system had too little for it.
  explicit WorkerProcess(std::vector<std::string> command, std::vector<std::string> variables = {},
                         int retry_ms = RetryPause::kFirstMs)
      : command_(std::move(command)), variables_(std::move(variables)), pause_(retry_ms) {}
  ~WorkerProcess() { stop(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Starts it if none runs, and anew if what it was asked last was never received, as where there
  // was no memory for that: the answer would be taken for another's. Errors: kUnsupported (no
  // command), kLimit (too often), kIo. After one for which is_short(), the system isn't asked again
  // for a while.
  Result<void> start();
  // None could be started for now: the system lacks memory, processes or descriptors.
  bool is_short() const { return !shortage_.empty(); }
  void stop();
  // Which of them runs, from 1 on; 0: none that can be asked.
  int number() const { return pid_ == 0 || is_asked_ ? 0 : starts_; }

  // Asks the one that runs. Errors: kLimit (too long), kIo (it ended); then none runs.
  Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> question, int within_ms);
  // The same in two steps; the answer to one question is received before the next one is sent.
  Result<void> send(std::span<const std::uint8_t> question, int within_ms);
  Result<std::vector<std::uint8_t>> receive(int within_ms);
  // What the process that ended last had noted (note_progress); 0: nothing.
  std::uint32_t last_noted() const { return last_noted_; }

 private:
  std::unexpected<Error> failed(bool is_late, int within_ms);
  std::unexpected<Error> refused(int error_number, std::string_view action,
                                 std::string_view subject);

  std::vector<std::string> command_;
  std::vector<std::string> variables_;
  RetryPause pause_;
  std::string shortage_;  // why none could be started for now; empty: it isn't so
  int starts_ = 0;
  int spent_ = 0;  // of kMostStarts
  pid_t pid_ = 0;  // 0: none runs
  bool is_asked_ = false;  // and hasn't answered
  UniqueFd socket_;
  UniqueFd notebook_;  // a memory file, which outlives it
  std::uint32_t last_noted_ = 0;
};

// The process's own side: the notebook on descriptor 3, if that is one; to be called once, before
// that is closed. Then what it is at can be told: costs a store.
void open_notebook();
void note_progress(std::uint32_t number);

// On descriptor 0: the next question; false: there will be none.
bool receive_question(std::vector<std::uint8_t>& question);
bool send_answer(std::span<const std::uint8_t> answer);

}  // namespace dial9::symbolize
