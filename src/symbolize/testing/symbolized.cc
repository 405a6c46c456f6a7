// A library whose functions are looked up by address: one that it exports, one that only a whole
// symbol table has.
// SPDX-License-Identifier: Apache-2.0
namespace {

[[gnu::noinline]] int hidden_worker(int x) {
  volatile int y = x;
  return y * 3 + 1;
}

}  // namespace

extern "C" int exported_worker(int x) { return hidden_worker(x) + 1; }

using Worker = int (*)(int);
extern "C" Worker address_of_hidden_worker() { return hidden_worker; }
