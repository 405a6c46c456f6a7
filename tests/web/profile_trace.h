// A small trace that holds what the large one doesn't: a profiler's samples and dumps with symbols,
// a span whose time goes to all five parts, an event with two numbers, and more rows of spans than
// a page of the viewer holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace web_test {

// Worker 0 is thread 41. Task 7 polls from 10 to 20 ms (3 of them in "fsync"), is ready at 40,
// polls from 45 to 50, and from 80 to 90 without a wake; the span "checkout" goes from 10 to 90 ms.
// Thread 41 is sampled each millisecond of the first poll, thread 99 ("logger") at 30 ms; task 7 is
// dumped at 20 ms in "kv_get". Ten "Order" {amount, total}; 1,500 spans "upload" from 60 to 70 ms
// at once.
std::vector<std::uint8_t> profile_trace();

}  // namespace web_test
