// The preloaded library on a program that wasn't built with dial9.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "format/materialize.h"

namespace dial9::test {
namespace {

class Preload : public testing::Test {
 protected:
  Preload() {
    std::string pattern = testing::TempDir() + "dial9-preload-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~Preload() override { std::filesystem::remove_all(directory_); }

  int run(const char* enabled) const {
    std::vector<std::string> environment;
    environment.emplace_back("LD_PRELOAD=" DIAL9_PRELOAD);
    environment.push_back("DIAL9_TRACE_DIR=" + directory_);
    environment.emplace_back(enabled);
    std::vector<char*> pointers;
    for (std::string& variable : environment) pointers.push_back(variable.data());
    pointers.push_back(nullptr);
    std::string program = DIAL9_PRELOAD_CHILD;
    char* arguments[] = {program.data(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, pointers.data()),
              0);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::vector<std::filesystem::path> segments() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.path().extension() == ".bin") found.push_back(entry.path());
    }
    return found;
  }

  std::string directory_;
};

TEST_F(Preload, ShowsTheWaitsOfEachThread) {
  ASSERT_EQ(run("DIAL9_ENABLED=1"), 0);
  ASSERT_EQ(segments().size(), 1u);
  std::ifstream file(segments()[0], std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  const format::MaterializedTrace trace = format::materialize(bytes);
  ASSERT_FALSE(trace.error.has_value());
  std::map<std::string, int> count;
  bool is_named = false;
  for (const format::OwnedEvent& event : trace.events) {
    const std::string name(trace.schemas[event.schema].name);
    ++count[name];
    if (name != "SegmentMetadataEvent") continue;
    for (const format::OwnedValue& entry : trace.field(event, "entries")->elements) {
      is_named |= entry.text.rfind("runtime.preload_child", 0) == 0;
    }
  }
  EXPECT_GE(count["WorkerParkEvent"], 1);
  EXPECT_GE(count["WorkerUnparkEvent"], 1);
  EXPECT_TRUE(is_named);
}

TEST_F(Preload, DoesNothingUnlessEnabled) {
  EXPECT_EQ(run("DIAL9_ENABLED=0"), 0);
  EXPECT_TRUE(segments().empty());
}

}  // namespace
}  // namespace dial9::test
