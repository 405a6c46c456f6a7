// See life.h.
// SPDX-License-Identifier: Apache-2.0
#include "life.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "format/decoder.h"

namespace dial9::testing {
namespace fs = std::filesystem;
namespace {

// What the segments of a run hold.
class Contents : public format::Visitor {
 public:
  std::vector<std::uint64_t> numbers[kThreads];
  std::vector<std::uint64_t> polled;  // tasks: each is polled once
  std::vector<std::uint64_t> spans;   // ids of those that were entered
  std::uint64_t others = 0;           // wakes, begins and ends of polls and of spans
  std::uint64_t lost = 0;

  bool on_event(const format::Event& event) override {
    if (event.schema.name == "Numbered") {
      EXPECT_LT(event.values[0].bits, kThreads);
      if (event.values[0].bits < kThreads) {
        numbers[event.values[0].bits].push_back(event.values[1].bits);
      }
      EXPECT_EQ(text(event.values[2]), name_of(event.values[1].bits))
          << "torn, or another's string";
    } else if (event.schema.name == "RecorderLossEvent") {
      lost += event.values[1].bits;
      const std::string_view cause = text(event.values[0]);
      // Only for want of room while it lived: nothing by the kill.
      EXPECT_TRUE(cause == "arena_full" || cause == "thread_share") << cause;
      EXPECT_NE(event.values[1].bits, 0U) << "of unknown size";
    } else {
      take_other(event);
    }
    return true;
  }

  void read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    format::Decoder decoder(*this);
    decoder_ = &decoder;
    auto outcome =
        decoder.feed({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    if (outcome) outcome = decoder.finish();
    EXPECT_TRUE(outcome.has_value()) << path << ": " << outcome.error().message;
  }

 private:
  std::string_view text(const format::Value& value) const {
    return decoder_->string(static_cast<std::uint32_t>(value.bits)).value_or("not in the pool");
  }

  void take_other(const format::Event& event) {
    const std::string_view name = event.schema.name;
    const bool is_enter = name.starts_with("SpanEnter");
    if (name == "PollStartEvent") polled.push_back(event.values[2].bits);
    if (is_enter) spans.push_back(event.values[1].bits);
    if (is_enter || name == "PollStartEvent" || name == "PollEndEvent" ||
        name == "WakeEventEvent" || name.starts_with("SpanExit")) {
      ++others;
    }
  }

  const format::Decoder* decoder_ = nullptr;
};

// Sorts them.
void expect_each_once(std::vector<std::uint64_t>& numbers, const std::string& what) {
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end())
      << what << " is there twice";
}

}  // namespace

void wait_us(long us) {
  const timespec t{us / 1'000'000, us % 1'000'000 * 1000};
  ::nanosleep(&t, nullptr);
}

Life::Life() {
  std::string name = (fs::temp_directory_path() / "dial9-survival-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
  fs::create_directory(root());
  const int fd = ::open(counters_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(::ftruncate(fd, sizeof(Counters)), 0);
  counters_ = static_cast<Counters*>(
      ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  ::close(fd);
}

Life::~Life() {
  child_.reset();
  ::munmap(counters_, sizeof(Counters));
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Life::start(const std::string& end, long delay_us, std::uint64_t seed) {
  child_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{DIAL9_SURVIVAL_CHILD, root(), counters_path(), end,
                               std::to_string(delay_us), std::to_string(seed)},
      log());
}

bool Life::await_recording() {
  for (int i = 0; i < 20'000; ++i) {
    if (counters_->is_recording.load(std::memory_order_acquire) != 0) return true;
    wait_us(500);
  }
  return false;
}

std::vector<std::string> Life::runs() const {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(root())) out.push_back(entry.path().string());
  return out;
}

void Life::check(const std::string& run) const {
  Contents contents;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (name == ".lock") continue;
    EXPECT_TRUE(name.ends_with(".bin")) << name << " is left";
    contents.read(entry.path().string());
  }
  std::uint64_t done = 0;
  std::uint64_t found = 0;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    auto& numbers = contents.numbers[t];
    const std::uint64_t calls = counters_->done[t].value.load();
    expect_each_once(numbers, "an event of thread " + std::to_string(t));
    if (!numbers.empty()) {
      EXPECT_LE(numbers.back(), calls) << "an event that never was";
    }
    done += calls + counters_->other[t].value.load();
    found += numbers.size();
  }
  expect_each_once(contents.polled, "a poll");
  expect_each_once(contents.spans, "a span");
  EXPECT_EQ(contents.polled.empty(), contents.others == 0);
  found += contents.others;
  EXPECT_GE(found + contents.lost, done) << "published events are missing";
  EXPECT_LE(found + contents.lost, done + kThreads);
  EXPECT_GT(done, 0U);
  EXPECT_GT(found, 0U);
}

}  // namespace dial9::testing
