// Whether the dynamic loader answers. A child of a fork whose parent's other thread was inside
// dl_iterate_phdr or dlopen has the loader's lock locked for ever: whoever asks then hangs.
// Strongest property: the caller never does; a small thread asks in its place, once a process.
// Spec: docs/spec/unwinding.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dial9::unwind {

// True: dl_iterate_phdr has returned in this process, so its lock's owners are all alive from here
// on. False: it didn't within 200 ms, or no thread could be made; only the first call in a process
// waits so long, and it may still become true. Any thread, not in a signal handler.
bool does_loader_answer() noexcept;

}  // namespace dial9::unwind
