// A process of our own that answers questions, for what must not end or hold up the one that asks.
// Strongest property: the answer or an error comes within the time that was given, whatever the
// process does; one that failed is ended, and replaced at the next question, up to a number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace dial9::symbolize {

// Not thread-safe.
class WorkerProcess {
 public:
  // In all; one that was ended because it took too long counts for four.
  static constexpr int kMostStarts = 64;

  // The program and its arguments; `variables` ("NAME=value") go before those of this process.
  // Empty: it can't be started.
  explicit WorkerProcess(std::vector<std::string> command, std::vector<std::string> variables = {})
      : command_(std::move(command)), variables_(std::move(variables)) {}
  ~WorkerProcess() { stop(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Starts it if none runs, and anew if what it was asked last was never received, as where there
  // was no memory for that: the answer would be taken for another's. Errors: kUnsupported (no
  // command), kLimit (too often), kIo.
  Result<void> start();
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

  std::vector<std::string> command_;
  std::vector<std::string> variables_;
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
