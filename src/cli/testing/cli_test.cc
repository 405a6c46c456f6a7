// See cli_test.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/testing/cli_test.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace dial9::cli::testing {

CliTest::CliTest() {
  std::string pattern = ::testing::TempDir() + "dial9-cli-XXXXXX";
  directory_ = ::mkdtemp(pattern.data());
  ::setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);  // not the user's
}

CliTest::~CliTest() { std::filesystem::remove_all(directory_); }

std::string CliTest::write(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
  std::ofstream file(path(name), std::ios::binary);
  for (const std::uint8_t byte : bytes) file.put(static_cast<char>(byte));
  return path(name);
}

std::string CliTest::read(const std::string& name) const {
  std::ifstream file(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Ran CliTest::dial9(const std::string& arguments, const std::string& before) const {
  return shell(before + " '" DIAL9_CLI "' " + arguments);
}

Ran CliTest::shell(const std::string& command) const {
  // In its own directory: what a verb writes by default falls there.
  const std::string line = "cd '" + directory_.string() + "' && { " + command + "; } > out 2> err";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out"), read("err")};
}

std::string CliTest::output_of(const std::string& arguments, int exit_code) const {
  const Ran ran = dial9(arguments);
  EXPECT_EQ(ran.exit_code, exit_code) << ran.err;
  return ran.out;
}

}  // namespace dial9::cli::testing
