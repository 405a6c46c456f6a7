// See signal_owner.h.
// SPDX-License-Identifier: Apache-2.0
#include <sys/time.h>

#include <array>
#include <charconv>
#include <cstdint>

#include "recorder/shared_signal.h"
#include "sources/loaded_modules.h"
#include "sources/signal_owner.h"

namespace dial9::internal {
namespace {

std::string hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

// Not by dladdr: that waits for the loader's lock, which a constructor in dlopen holds, and such a
// one may be waiting for us.
std::string describe(void* code) {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  for (const ModuleRecord& module : loaded_modules().modules) {
    if (address < module.begin || address >= module.end) continue;
    return module.path + " (at " + hex(address - module.bias) + ")";
  }
  return "code at " + hex(address);
}

}  // namespace

std::string signal_name(int signal) {
  return signal == SIGPROF ? "SIGPROF" : "signal " + std::to_string(signal);
}

std::string signal_owner(int signal, SignalHandler ours) {
  struct sigaction now{};
  if (kernel_sigaction(signal, nullptr, &now) != 0) return "can't be used";
  const bool has_info = (now.sa_flags & SA_SIGINFO) != 0;
  if (has_info && now.sa_sigaction == ours) {
    void* const host = host_handler(signal);
    return host == nullptr ? "" : "is handled by " + describe(host);
  }
  if (!has_info && now.sa_handler == SIG_IGN) return "is ignored";
  if (has_info || now.sa_handler != SIG_DFL) {
    return "is handled by " + describe(has_info ? reinterpret_cast<void*>(now.sa_sigaction)
                                                : reinterpret_cast<void*>(now.sa_handler));
  }
  itimerval timer{};
  if (signal == SIGPROF && ::getitimer(ITIMER_PROF, &timer) == 0 &&
      (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0)) {
    return "is sent by a timer (ITIMER_PROF) that runs in this process";
  }
  return "";
}

}  // namespace dial9::internal
