// See top_screen.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/top_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "cli/output.h"

namespace dial9::cli {
namespace {

constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile sig_atomic_t g_must_end = 0;

volatile sig_atomic_t g_is_resized = 0;

void on_end(int) { g_must_end = 1; }
void on_resize(int) { g_is_resized = 1; }

// Holds the handled signals back, so that none comes between a look at what they set and the wait
// that they are to end.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t handled;
    ::sigemptyset(&handled);
    for (const int number : kEndSignals) ::sigaddset(&handled, number);
    ::sigaddset(&handled, SIGWINCH);
    ::sigprocmask(SIG_BLOCK, &handled, &before_);
  }
  ~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

void handle(int number, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

winsize window() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

}  // namespace

bool TopScreen::is_there() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

TopScreen::TopScreen() {
  ::tcgetattr(STDIN_FILENO, &before_);
  for (const int number : kEndSignals) handle(number, on_end);
  handle(SIGWINCH, on_resize);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_out("\033[?1049h\033[?25l");  // another screen, no cursor
}

TopScreen::~TopScreen() {
  write_out("\033[?25h\033[?1049l");
  flush_out();
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  for (const int number : kEndSignals) handle(number, SIG_DFL);
  handle(SIGWINCH, SIG_DFL);
}

std::size_t TopScreen::width() const {
  const winsize size = window();
  return size.ws_col == 0 ? 80 : size.ws_col;
}

std::size_t TopScreen::height() const {
  const winsize size = window();
  return size.ws_row == 0 ? 24 : size.ws_row;
}

void TopScreen::show(const std::vector<std::string>& lines) {
  std::string page = "\033[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    page += (i == 0 ? "" : "\r\n") + lines[i] + "\033[K";
  }
  write_out(page + "\033[J");
  if (!flush_out()) g_must_end = 1;
}

bool TopScreen::wait(std::uint64_t time_ns) {
  const SignalsHeld held;
  if (g_must_end != 0) return false;
  if (g_is_resized != 0) {  // since the size was asked for, or a moment before: one page too many
    g_is_resized = 0;
    return true;
  }
  timespec left{static_cast<time_t>(time_ns / 1'000'000'000),
                static_cast<long>(time_ns % 1'000'000'000)};
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = ::ppoll(&input, 1, &left, &held.before());
  g_is_resized = 0;
  if (g_must_end != 0) return false;
  if (ready <= 0) return ready == 0 || errno == EINTR;
  char keys[16];
  const ssize_t got = ::read(STDIN_FILENO, keys, sizeof keys);
  if (got <= 0) return got < 0 && errno == EINTR;
  for (ssize_t i = 0; i < got; ++i) {
    if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 3) return false;
  }
  return true;
}

}  // namespace dial9::cli
