// A library whose functions are looked up by address: one that it exports, one that only a whole
// symbol table has, and one with two functions inlined into it. The test knows its line numbers.
// SPDX-License-Identifier: Apache-2.0
namespace {

[[gnu::noinline]] int hidden_worker(int x) {  // HIDDEN
  volatile int y = x;
  return y * 3 + 1;
}

}  // namespace

extern "C" int exported_worker(int x) { return hidden_worker(x) + 1; }

using Worker = int (*)(int);
extern "C" Worker address_of_hidden_worker() { return hidden_worker; }

namespace shop {
namespace {

[[gnu::always_inline]] inline int doubled(int x) {
  volatile int y = x;
  return y * 2;
}

}  // namespace

struct Till {
  int total = 0;
  [[gnu::always_inline]] inline void* add(int price);
};

[[gnu::always_inline]] inline void* where() {  // WHERE
  void* here = nullptr;
  asm volatile("lea 0(%%rip), %0\n\tnop" : "=r"(here));  // AT: of the nop
  return here;
}

inline void* Till::add(int price) {  // ADD
  total += price;
  return where();  // WHERE IS CALLED
}

}  // namespace shop

volatile int g_total;

// An address in where(), inlined into add(), inlined into this.
extern "C" void* inlined_address(int price) {  // THE FUNCTION
  shop::Till till;
  void* const here = till.add(price);  // ADD IS CALLED
  g_total = shop::doubled(till.total);
  return here;
}
