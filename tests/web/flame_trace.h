// Small traces for the flame graphs of time off the CPU, of both, of locks and of the heap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace web_test {

// The span "checkout" (0x8000000000000001) of task 5 on thread 7 from 100 to 200 ms: 20 ms on the
// CPU in price_cart, 50 in recv (kv_get), 10 in a lock (kv_get); all called by serve_request. After
// it 30 ms on the CPU in write_log.
std::vector<std::uint8_t> flame_trace();
// An earlier run of the same service: 30 ms on the CPU in price_cart (task 5 there is another one),
// 10 in write_log; by another build of the program.
std::vector<std::uint8_t> flame_before_trace();
// 100 allocations in price_cart, one in ten of them freed, and 5 lost frees.
std::vector<std::uint8_t> heap_trace();

}  // namespace web_test
