// `dial9 top` on a terminal: keys, a new size, and that the terminal is as it was at every end.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/exit_code.h"
#include "session/testing/hung_child.h"

namespace dial9::cli {
namespace {

using dial9::testing::HangOptions;
using dial9::testing::HungChild;

constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";
constexpr std::string_view kPageEnd = "\033[J";
constexpr int kPatienceMs = 20'000;  // of a machine under load, before a test fails

// A terminal of 24 lines of 100 columns with `dial9 top PID` in it.
class Terminal {
 public:
  explicit Terminal(pid_t target, const char* interval = "100ms") {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 100;
    if (::openpty(&terminal_, &program_, nullptr, nullptr, &size) != 0) return;
    ::tcgetattr(program_, &before_);
    const std::string pid = std::to_string(target);
    top_ = ::fork();
    if (top_ == 0) {
      ::login_tty(program_);
      ::execl(DIAL9_CLI, "dial9", "top", "--interval", interval, pid.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Terminal() {
    if (top_ > 0 && !has_ended_) {
      ::kill(top_, SIGKILL);
      ::waitpid(top_, nullptr, 0);
    }
    ::close(terminal_);
    ::close(program_);
  }

  // Reads until what came since the last call holds `wanted`; false: it doesn't come.
  bool shows(std::string_view wanted) {
    const std::size_t from = seen_;
    for (;;) {
      const std::size_t at = out_.find(wanted, from);
      if (at != std::string::npos) {
        seen_ = at + wanted.size();
        return true;
      }
      if (!read_some()) return false;
    }
  }
  // The next whole page.
  std::string page() {
    const std::size_t from = seen_;
    return shows(kPageEnd) ? out_.substr(from, seen_ - from) : "";
  }
  void type(std::string_view keys) {
    ASSERT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void resize(unsigned short rows, unsigned short columns) {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    ASSERT_EQ(::ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  void signal(int number) { ::kill(top_, number); }
  int exit_code() {
    int status = 0;
    if (::waitpid(top_, &status, 0) != top_) return -1;
    has_ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool echoes() const {
    termios now{};
    ::tcgetattr(program_, &now);
    return (now.c_lflag & (ICANON | ECHO)) != 0;
  }
  bool is_as_before() const {
    termios now{};
    ::tcgetattr(program_, &now);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag &&
           now.c_oflag == before_.c_oflag && now.c_cflag == before_.c_cflag;
  }
  const std::string& out() const { return out_; }

 private:
  bool read_some() {
    pollfd ready{terminal_, POLLIN, 0};
    if (::poll(&ready, 1, kPatienceMs) <= 0) return false;
    char bytes[4'096];
    const ssize_t got = ::read(terminal_, bytes, sizeof bytes);
    if (got <= 0) return false;
    out_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  int terminal_ = -1;
  int program_ = -1;
  pid_t top_ = -1;
  termios before_{};
  std::string out_;
  std::size_t seen_ = 0;
  bool has_ended_ = false;
};

std::size_t lines_of(const std::string& page) {
  return static_cast<std::size_t>(std::count(page.begin(), page.end(), '\n')) + 1;
}

std::size_t widest_line(const std::string& page) {
  std::size_t widest = 0;
  std::size_t width = 0;
  bool is_escape = false;
  for (const char c : page) {
    if (c == '\r') {
      width = 0;
    } else if (c == '\033') {
      is_escape = true;
    } else if (is_escape) {
      is_escape = !((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
    } else if (c != '\n' && (static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      widest = std::max(widest, ++width);
    }
  }
  return widest;
}

class TopTerminal : public ::testing::Test {
 protected:
  TopTerminal() : child_(HangOptions{}) {}
  void SetUp() override { ASSERT_TRUE(child_.is_ready()); }
  HungChild child_;
};

TEST_F(TopTerminal, IsRefreshedUntilQAndThenAsItWas) {
  Terminal terminal(child_.pid());
  ASSERT_TRUE(terminal.shows(kEnter));
  ASSERT_TRUE(terminal.shows("2 in polls")) << terminal.out();
  ASSERT_TRUE(terminal.shows(kPageEnd));
  EXPECT_FALSE(terminal.echoes());
  terminal.type("xy ");  // keys that mean nothing
  ASSERT_NE(terminal.page(), "");
  ASSERT_NE(terminal.page(), "");
  terminal.type("q");
  EXPECT_TRUE(terminal.shows(kLeave));
  EXPECT_EQ(terminal.exit_code(), kOk);
  EXPECT_TRUE(terminal.is_as_before());
}

TEST_F(TopTerminal, FillsTheNewSizeAndNoMoreAtOnce) {
  Terminal terminal(child_.pid(), "60s");  // the next page comes by the size alone
  ASSERT_TRUE(terminal.shows(kEnter));
  const std::string first = terminal.page();
  EXPECT_LE(lines_of(first), 24U);
  EXPECT_GT(widest_line(first), 40U);
  terminal.resize(8, 40);
  const std::string second = terminal.page();
  ASSERT_NE(second, "");
  EXPECT_LE(lines_of(second), 8U) << second;
  EXPECT_LE(widest_line(second), 40U) << second;
  terminal.type("Q");
  EXPECT_EQ(terminal.exit_code(), kOk);
}

TEST_F(TopTerminal, IsAsItWasAfterControlCAndAfterASignal) {
  for (const bool is_key : {true, false}) {
    Terminal terminal(child_.pid());
    ASSERT_TRUE(terminal.shows(kPageEnd));
    if (is_key) {
      terminal.type("\003");
    } else {
      terminal.signal(SIGTERM);
    }
    EXPECT_TRUE(terminal.shows(kLeave));
    EXPECT_EQ(terminal.exit_code(), kOk);
    EXPECT_TRUE(terminal.is_as_before());
  }
}

TEST_F(TopTerminal, IsAsItWasWhenTheProcessExecutesAProgramWithoutARecorder) {
  HangOptions options;
  options.stops = false;
  options.then = HangOptions::Then::kExecs;
  HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  Terminal terminal(child.pid());
  ASSERT_TRUE(terminal.shows(kPageEnd));
  ASSERT_TRUE(child.go_on());
  EXPECT_TRUE(terminal.shows(kLeave));
  EXPECT_TRUE(terminal.shows("no recorder of dial9"));
  EXPECT_EQ(terminal.exit_code(), kUnreadable);
  EXPECT_TRUE(terminal.is_as_before());
}

TEST_F(TopTerminal, IsAsItWasWhenTheProcessEnds) {
  Terminal terminal(child_.pid());
  ASSERT_TRUE(terminal.shows(kPageEnd));
  child_.kill_now();
  EXPECT_TRUE(terminal.shows(kLeave));
  EXPECT_TRUE(terminal.shows("dial9: top "));  // on the screen that stays
  EXPECT_EQ(terminal.exit_code(), kUnreadable);
  EXPECT_TRUE(terminal.is_as_before());
}

}  // namespace
}  // namespace dial9::cli
