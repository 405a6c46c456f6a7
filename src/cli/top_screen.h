// The terminal of `dial9 top`: its size, its keys, and a page drawn over the one before. Strongest
// property: however the program ends by itself or by a signal that ends programs, the terminal is
// as it was.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dial9::cli {

// One at a time.
class TopScreen {
 public:
  TopScreen();
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  // True if page and keys are a terminal's.
  static bool is_there();

  std::size_t width() const;
  std::size_t height() const;
  void show(const std::vector<std::string>& lines);
  // Until the time has passed, the window's size has changed or a key was hit. False: it is to end
  // (q, Ctrl-C, SIGTERM, no more input).
  bool wait(std::uint64_t time_ns);

 private:
  termios before_{};
};

}  // namespace dial9::cli
