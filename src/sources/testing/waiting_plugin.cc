// A library whose constructor and destructor call a function of the test's, which is given by its
// address in the environment.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

namespace {

void call_test() {
  if (const char* text = std::getenv("DIAL9_TEST_CALL")) {
    reinterpret_cast<void (*)()>(std::strtoull(text, nullptr, 10))();
  }
}

struct Caller {
  Caller() { call_test(); }
  ~Caller() { call_test(); }
};
const Caller g_caller;

}  // namespace

extern "C" int waiting_plugin_value() { return 7; }
