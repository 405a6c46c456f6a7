// Where heap samples can't be had, they say why, and change nothing. This binary has the sampler
// without dial9's malloc.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dial9/heap_samples.h"

namespace dial9 {
namespace {

TEST(HeapRefusal, NamesWhatIsInTheWay) {
  const Status status = add_heap_samples();
  EXPECT_FALSE(status.ok());
#if defined(DIAL9_SANITIZED_ADDRESS)
  EXPECT_NE(status.message().find("AddressSanitizer has the allocator"), std::string::npos)
      << status.message();
#elif defined(DIAL9_SANITIZED_THREAD)
  EXPECT_NE(status.message().find("ThreadSanitizer has the allocator"), std::string::npos)
      << status.message();
#else
  EXPECT_NE(status.message().find("link dial9::heap"), std::string::npos) << status.message();
#endif
  EXPECT_FALSE(heap_sample_status().is_sampling);
  EXPECT_EQ(heap_sample_status().message.empty(), false);
  EXPECT_FALSE(remove_heap_samples());
}

TEST(HeapRefusal, NamesARateThatIsOutOfRange) {
  EXPECT_NE(add_heap_samples({.sample_rate_bytes = 0}).message().find("from 1 to 2^40"),
            std::string::npos);
  EXPECT_FALSE(add_heap_samples({.sample_rate_bytes = std::uint64_t{1} << 41}).ok());
}

}  // namespace
}  // namespace dial9
