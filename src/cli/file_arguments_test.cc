// Every argument of every verb that names a file or a folder: where there is none, or none that can
// be read, the exit code is that of an unreadable input, and the message names it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/testing/trace_builder.h"
#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"

namespace dial9::cli {
namespace {

using testing::Ran;

// What stands before the path and behind it; TRACE is a good one.
struct FileArgument {
  std::string before;
  std::string after;
  bool is_folder = false;  // a folder is what it wants
};

const std::vector<FileArgument>& inputs() {
  static const std::vector<FileArgument> all = {
      {"info", ""},
      {"cat", ""},
      {"diagnose", ""},
      {"spans", ""},
      {"flame", ""},
      {"offcpu", ""},
      {"heap", ""},
      {"info TRACE", ""},
      {"recover", "", true},
      {"serve --port 0", "", true},
      {"serve --port 0 --base", "TRACE"},
      {"serve --port 0 --token-file", "TRACE"},
      {"flame TRACE --diff", ""},
      {"doctor --program", ""},
      {"flame --symbol-path", "TRACE", true},
      {"offcpu --symbol-path", "TRACE", true},
      {"heap --symbol-path", "TRACE", true},
      {"serve --port 0 --symbol-path", "TRACE", true},
  };
  return all;
}

class FileArguments : public testing::CliTest {
 protected:
  FileArguments() {
    analysis::testing::TraceBuilder builder;
    builder.poll(1'000'000'000, 1'500'000'000, 0, 7, "app.cc:3");
    trace_ = "'" + write("trace.bin", builder.take()) + "'";
  }

  // A server that starts in spite of it would not end.
  Ran run(const FileArgument& argument, const std::string& path) const {
    return dial9(with_trace(argument.before) + " '" + path + "' " + with_trace(argument.after),
                 "timeout 10");
  }
  void expect_unreadable(const FileArgument& argument, const std::string& path) const {
    const Ran ran = run(argument, path);
    EXPECT_EQ(ran.exit_code, kUnreadable) << argument.before << " " << path << ": " << ran.err;
    const std::string name = std::filesystem::path(path).filename();
    EXPECT_NE(ran.err.find(name), std::string::npos) << argument.before << ": " << ran.err;
  }

 private:
  std::string with_trace(std::string text) const {
    const std::size_t at = text.find("TRACE");
    return at == std::string::npos ? text : text.replace(at, 5, trace_);
  }

  std::string trace_;
};

TEST_F(FileArguments, WhatIsNotThereIsUnreadable) {
  std::filesystem::create_symlink("nowhere", path("dangling"));
  for (const FileArgument& argument : inputs()) {
    for (const std::string name : {"missing", "missing/inside", "trace.bin/inside", "dangling"}) {
      expect_unreadable(argument, path(name));
    }
  }
}

TEST_F(FileArguments, WhatIsOfAnotherKindIsUnreadable) {
  std::filesystem::create_directory(path("folder"));
  for (const FileArgument& argument : inputs()) {
    expect_unreadable(argument, "/dev/null");
    if (!argument.is_folder) expect_unreadable(argument, path("folder"));
  }
}

TEST_F(FileArguments, WhatMayNotBeReadIsUnreadable) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string folder = path("closed");
  std::filesystem::create_directory(folder);
  write("closed/trace.bin", {});
  std::filesystem::permissions(folder, std::filesystem::perms::none);
  for (const FileArgument& argument : inputs()) {
    expect_unreadable(argument, folder + "/trace.bin");
  }
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
}

// As "$UNSET" of a shell gives it. Taken for "not given", it would serve without its token.
TEST_F(FileArguments, AnEmptyNameIsWrongUsage) {
  std::vector<FileArgument> all = inputs();
  all.push_back({"doctor --dir", ""});
  all.push_back({"snapshot 1 -o", ""});
  for (const FileArgument& argument : all) {
    const Ran ran = run(argument, "");
    EXPECT_EQ(ran.exit_code, kUsage) << argument.before << ": " << ran.err;
    EXPECT_NE(ran.err.find("give a path"), std::string::npos) << argument.before << ": " << ran.err;
  }
}

}  // namespace
}  // namespace dial9::cli
