// Tests of the built executable, run as a user runs it, in a directory of their own: output, errors
// and exit codes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dial9::cli::testing {

struct Ran {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  CliTest();
  ~CliTest() override;

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  // Returns the path.
  std::string write(const std::string& name, const std::vector<std::uint8_t>& bytes) const;
  std::string read(const std::string& name) const;

  // `arguments` by the rules of the shell; `before` stands before the program, variables say.
  Ran dial9(const std::string& arguments, const std::string& before = "") const;
  Ran shell(const std::string& command) const;
  // The output alone; another exit code is a failure.
  std::string output_of(const std::string& arguments, int exit_code = 0) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace dial9::cli::testing
