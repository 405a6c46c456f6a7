// A service that takes its malloc from dial9::heap and has each of a thousand allocations recorded.
// SPDX-License-Identifier: Apache-2.0
#include <dial9/heap_samples.h>
#include <dial9/recorder.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto [recorder, status] = dial9::Recorder::start(dial9::RecorderOptions::disk(argv[1]));
  if (status) {
    dial9::HeapSampleOptions options;
    options.sample_rate_bytes = 1;
    status = dial9::add_heap_samples(options);
  }
  if (!status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  std::vector<void*> held(1000);
  for (void*& one : held) one = std::malloc(48);
  for (void* one : held) std::free(one);
  return recorder.stop().is_complete ? 0 : 1;
}
