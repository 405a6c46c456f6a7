// The last thing that a dying process says: a CrashEvent with the stack of the thread that died,
// written into memory that outlives the process (`dial9 recover`). Strongest property: nothing of
// the host's changes but that one event: who handled the signal before is called with the same
// arguments, and the exit status, the core dump and its registers are those without dial9.
// Spec: docs/spec/recorder.md, "Crashes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dial9/recorder.h"

namespace dial9 {

// Handles SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP and SIGSYS from now until the process
// ends: while a recorder records, an event is written; then whoever handled the signal before has
// his turn, or the process ends by it. A signal that is ignored stays ignored. Also gives the
// calling thread, and each thread that becomes a worker of a runtime later on, an alternate signal
// stack (add_crash_stack): used where nobody handled the signal before, or with SA_ONSTACK; another
// handler keeps the stack that it had, so that there an overflow of the stack ends the process with
// no word, as it does without dial9. Call it early, before or after Recorder::start(), and after
// those whose handlers should be called (a later handler replaces this one, or chains to it). Any
// thread, not in a signal handler; further calls do nothing. DIAL9_CRASH_HANDLER does the same.
// Link dial9_session. Fails where the platform isn't supported. Cost: nothing until a signal comes,
// but one look at the list of loaded modules a second while the host records (1-2 us).
Status install_crash_handler() noexcept;

// Gives the calling thread an alternate signal stack, without which an overflow of its own stack
// ends the process with no word. A thread that has one keeps it. 64 KiB and the kernel's signal
// frame of address space, memory only once it is used; given back at the thread's end. Fails if
// there is no memory.
Status add_crash_stack() noexcept;

}  // namespace dial9
