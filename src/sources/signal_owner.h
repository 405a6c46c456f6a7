// Who has a signal: nobody, somebody by name, or us. Spec: docs/spec/cpu_samples.md, "The signal".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <string>

namespace dial9::internal {

using SignalHandler = void (*)(int, siginfo_t*, void*);

// "SIGPROF", "signal 40".
std::string signal_name(int signal);

// Empty if the signal is nobody's, or `ours` handles it; else whose it is, as "is handled by
// /lib/libprofiler.so (at 0x1a40)", the address as in the file. Never waits for a constructor in
// dlopen. Not in a signal handler.
std::string signal_owner(int signal, SignalHandler ours);

}  // namespace dial9::internal
