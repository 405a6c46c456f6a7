// Debug files of a server on this machine: when it is asked, what is taken of it, and what bounds
// it.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/debuginfod.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/unique_fd.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbolizer.h"

namespace dial9::symbolize {
namespace {

namespace fs = std::filesystem;

const std::string kStripped = DIAL9_SPLIT "/worker.so";
const std::string kDebugFile = DIAL9_SPLIT "/debug/worker.so.debug";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A server that answers each request with one body, or with none.
class Server {
 public:
  enum class Answer : std::uint8_t { kBody, kNotFound, kNothing };

  Server(Answer answer, std::string body) : answer_(answer), body_(std::move(body)) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), any, size) != 0 || ::listen(listener_.get(), 8) != 0 ||
        ::getsockname(listener_.get(), any, &size) != 0) {
      return;
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int requests() const { return requests_; }
  std::string last_path() const { return requests_ == 0 ? "" : path_; }  // nobody asks any more

 private:
  void serve() {
    std::vector<UniqueFd> open;  // those that wait for ever
    for (;;) {
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      std::string request;
      char part[1024];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = ::recv(client.get(), part, sizeof part, 0);
        if (n <= 0) break;
        request.append(part, static_cast<std::size_t>(n));
      }
      path_ = request.substr(0, request.find(" HTTP"));
      ++requests_;
      if (answer_ == Answer::kNothing) {
        open.push_back(std::move(client));
        continue;
      }
      const std::string body = answer_ == Answer::kBody ? body_ : "";
      const std::string reply = std::string("HTTP/1.1 ") +
                                (answer_ == Answer::kBody ? "200 OK" : "404 Not Found") +
                                "\r\nContent-Length: " + std::to_string(body.size()) +
                                "\r\nConnection: close\r\n\r\n" + body;
      for (std::size_t sent = 0; sent < reply.size();) {
        const ssize_t n =
            ::send(client.get(), reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
    }
  }

  const Answer answer_;
  const std::string body_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> requests_{0};
  std::string path_;
  std::thread thread_;
};

class DebuginfodTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) GTEST_SKIP() << "no libdebuginfod.so.1; install libdebuginfod1";
    ::dlclose(library);
    ::setenv("no_proxy", "127.0.0.1", 1);
    std::string pattern = ::testing::TempDir() + "dial9-debuginfod-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    const std::string bytes = content_of(kStripped);
    const FileReader reader = [&](std::uint64_t offset, std::span<std::uint8_t> to) {
      if (offset + to.size() > bytes.size()) return false;
      std::copy_n(bytes.data() + offset, to.size(), to.data());
      return true;
    };
    const auto elf = ElfFile::open(reader, bytes.size());
    ASSERT_TRUE(elf.has_value());
    build_id_ = elf->build_id();
    for (const ElfFile::Section& section : elf->sections()) {
      if (section.name == ".text") text_ = section.header;
    }
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  SymbolizerOptions options(const Server& server) const {
    SymbolizerOptions given{{}, directory_ + "/none"};
    given.dwarf.command = {DIAL9_DWARF_WORKER};
    given.debuginfod.command = {DIAL9_DWARF_WORKER};
    given.debuginfod.directory = directory_ + "/cache/files";
    given.debuginfod.urls = server.url();
    return given;
  }
  // How many addresses of the library's code the function that only the debug file names has.
  std::size_t hidden(Symbolizer& symbolizer, std::size_t* lines = nullptr) const {
    std::size_t found = 0;
    for (std::uint64_t at = text_.sh_addr; at < text_.sh_addr + text_.sh_size; ++at) {
      for (const Frame& frame : symbolizer.frames(kStripped, build_id_, at, false)) {
        found += frame.name.find("::hidden_worker(") != std::string::npos ? 1 : 0;
        if (lines != nullptr) *lines += frame.at_line != 0 ? 1 : 0;
      }
    }
    return found;
  }

  std::string directory_;
  std::string build_id_;
  Elf64_Shdr text_{};
};

TEST_F(DebuginfodTest, GivesTheDebugFileOnceAndKeepsIt) {
  const Server server(Server::Answer::kBody, content_of(kDebugFile));
  std::size_t lines = 0;
  {
    Symbolizer symbolizer(options(server));
    EXPECT_GT(hidden(symbolizer, &lines), 0U);
    EXPECT_TRUE(symbolizer.notes().empty()) << symbolizer.notes()[0];
  }
  EXPECT_EQ(lines != 0, DwarfFile::is_supported());
  EXPECT_EQ(server.last_path(), "GET /buildid/" + build_id_ + "/debuginfo");
  Symbolizer again(options(server));
  EXPECT_GT(hidden(again), 0U);
  EXPECT_EQ(server.requests(), 1) << "the second time it was there";
}

TEST_F(DebuginfodTest, IsNotAskedUnlessTheUserSaysSo) {
  const Server server(Server::Answer::kBody, content_of(kDebugFile));
  ::setenv("DEBUGINFOD_URLS", server.url().c_str(), 1);
  SymbolizerOptions given = options(server);
  given.debuginfod.urls.clear();
  Symbolizer symbolizer(given);
  EXPECT_EQ(hidden(symbolizer), 0U);
  ::unsetenv("DEBUGINFOD_URLS");
  EXPECT_EQ(server.requests(), 0);
}

TEST_F(DebuginfodTest, SaysWhichModuleNoServerKnows) {
  const Server server(Server::Answer::kNotFound, "");
  Symbolizer symbolizer(options(server));
  EXPECT_EQ(hidden(symbolizer), 0U);
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_EQ(symbolizer.notes()[0],
            "debuginfod has no debug file of " + kStripped + ": no server has it");
}

TEST_F(DebuginfodTest, GivesNoFileOfAnotherBuild) {
  const Server server(Server::Answer::kBody, content_of(DIAL9_DWARF_WORKER));
  Symbolizer symbolizer(options(server));
  EXPECT_EQ(hidden(symbolizer), 0U);
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_NE(symbolizer.notes()[0].find("the trace says " + build_id_ + ": not used"),
            std::string::npos)
      << symbolizer.notes()[0];
}

TEST_F(DebuginfodTest, GivesNoFileBeyondItsBound) {
  const Server server(Server::Answer::kBody, std::string(3 << 20, 'x'));
  SymbolizerOptions given = options(server);
  given.debuginfod.most_file_bytes = 1 << 20;
  Symbolizer symbolizer(given);
  EXPECT_EQ(hidden(symbolizer), 0U);
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_NE(symbolizer.notes()[0].find("larger than 1 MiB"), std::string::npos)
      << symbolizer.notes()[0];
  std::uint64_t kept = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    if (entry.is_regular_file()) kept += entry.file_size();
  }
  EXPECT_LE(kept, std::uint64_t{1} << 20);
}

TEST_F(DebuginfodTest, IsNotWaitedForTwiceWhereItDoesNotAnswer) {
  const Server server(Server::Answer::kNothing, "");
  DebuginfodOptions given = options(server).debuginfod;
  given.fetch_ms = 300;
  Debuginfod debuginfod(given);
  const auto first = debuginfod.fetch(build_id_, "worker.so");
  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(first.error().code, ErrorCode::kLimit);
  const auto second = debuginfod.fetch(std::string(40, 'a'), "other.so");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kCancelled);
  EXPECT_LE(server.requests(), 1);
}

TEST_F(DebuginfodTest, KeepsItsFolderWithinItsBound) {
  const Server server(Server::Answer::kBody, std::string(100'000, 'x'));
  DebuginfodOptions given = options(server).debuginfod;
  given.most_bytes = 250'000;
  Debuginfod debuginfod(given);
  std::vector<std::string> paths;
  for (const char digit : {'a', 'b', 'c'}) {
    if (digit == 'c') {  // and b was used before a
      for (const int file : {0, 1}) {
        const timespec times[2] = {{1'000'000'000 - file, 0}, {0, UTIME_OMIT}};
        ASSERT_EQ(::utimensat(AT_FDCWD, paths[static_cast<std::size_t>(file)].c_str(), times, 0),
                  0);
      }
    }
    const auto path = debuginfod.fetch(std::string(40, digit), "worker.so");
    ASSERT_TRUE(path.has_value()) << path.error().message;
    paths.push_back(*path);
  }
  EXPECT_TRUE(fs::exists(paths[0]));
  EXPECT_FALSE(fs::exists(paths[1])) << "used least lately";
  EXPECT_TRUE(fs::exists(paths[2]));
}

}  // namespace
}  // namespace dial9::symbolize
