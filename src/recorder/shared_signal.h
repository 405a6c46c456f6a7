// One signal that the recorder and its host both have. The recorder's handler stays in the kernel;
// what the host asks for by sigaction() is kept beside it, and what isn't the recorder's is passed
// on. Strongest property: a host that resets the signal, or handles it, is never reached by one of
// the recorder's, and finds what it set. Only where sigaction() is ours (the preloaded libraries);
// elsewhere nothing is shared, and kernel_sigaction() is sigaction().
// Spec: docs/spec/cpu_samples.md, "The signal".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace dial9::internal {

using KernelSigaction = int (*)(int, const struct sigaction*, struct sigaction*) noexcept;
using SharedHandler = void (*)(int, siginfo_t*, void*);

// The host's calls come to host_sigaction() from now on; the real one is `real`.
void share_signals(KernelSigaction real) noexcept;
// What the kernel has, past the host's view. Async-signal-safe.
int kernel_sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept;

// `ours` handles `signal` in this process, and stays. Before it is installed. One signal a process:
// a second one isn't shared.
void share_signal(int signal, SharedHandler ours) noexcept;
bool is_shared(int signal) noexcept;

// sigaction() as the host sees it: of a shared signal it gets and sets its own part. A handler
// that it ignores is ignored by the kernel. A child of a fork has the kernel's for itself.
// Async-signal-safe; errno as sigaction's.
int host_sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept;
// The host's own handler of the shared signal; null: none (default, ignored, or not shared).
void* host_handler(int signal) noexcept;
// In our handler: the signal is the host's. Does what it would have done: calls the host's handler,
// under its mask, or ends the process. Nothing where signals aren't shared.
void pass_on(int signal, siginfo_t* info, void* context) noexcept(false);

}  // namespace dial9::internal
