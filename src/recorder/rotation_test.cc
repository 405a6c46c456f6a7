// A rotation that somebody asks for, in trouble perhaps: what sources have gathered until then is
// in the segment that it seals.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "recorder/cpu_sample_stream.h"
#include "recorder/stream_source.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

// As perf's: the kernel holds its samples until they are fetched in a pass. It stays for the
// process's life.
class KernelSamples : public StreamSource {
 public:
  std::uint64_t attend(std::uint64_t now_ns) override {
    CpuSampleRecord sample;
    sample.at_ns = now_ns;
    for (; in_kernel_ != 0; --in_kernel_) encoder_.add(sample);
    return ~std::uint64_t{0};
  }
  void rest() override {}
  std::vector<SourceStream> take() override { return encoder_.take(); }
  std::uint64_t metadata_version() const override { return 0; }
  Metadata metadata() const override { return {}; }

  int in_kernel_ = 0;

 private:
  CpuSampleEncoder encoder_;
};

TEST(Rotation, TakesAlongWhatSourcesHaveGatheredSinceTheLastPass) {
  static KernelSamples samples;
  ASSERT_TRUE(add_stream_source(&samples));
  SteppedRecorder recorder;
  recorder.step();
  samples.in_kernel_ = 3;
  ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  EXPECT_EQ(Trace::of(recorder->sealed_segments()).count("CpuSampleEvent"), 3U);
  recorder->disable();
  samples.in_kernel_ = 1;
  ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  EXPECT_EQ(samples.in_kernel_, 1) << "while recording is off nothing is fetched";
  samples.in_kernel_ = 0;
}

}  // namespace
}  // namespace dial9::internal
