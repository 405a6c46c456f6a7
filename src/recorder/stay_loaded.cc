// See stay_loaded.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/stay_loaded.h"

#include <dlfcn.h>
#include <link.h>

#include "dial9/internal/thread_buffer.h"

namespace dial9::internal {

void stay_loaded() noexcept {
  // A variable, not a function: an executable without PIC has functions' addresses of its own.
  Dl_info info{};
  link_map* object = nullptr;
  if (::dladdr1(&g_fork_page, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
      object == nullptr || object->l_name == nullptr || object->l_name[0] == 0) {
    return;  // the executable itself
  }
  // Never closed: the flag stays with the object, and the handle is a count that nobody needs.
  static_cast<void>(::dlopen(object->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

}  // namespace dial9::internal
