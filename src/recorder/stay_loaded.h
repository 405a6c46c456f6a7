// Keeps the shared object that the recorder is linked into loaded until the process ends. Thread
// keys, fork handlers, signal handlers and the collector's thread lead into its code: a dlclose
// would leave them leading nowhere. Spec: docs/spec/recorder.md, "Shared objects".
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dial9::internal {

// Nothing in an executable, which stays anyway. Takes the loader's lock; idempotent.
void stay_loaded() noexcept;

}  // namespace dial9::internal
