// See workloads.h. DIAL9_WORKLOADS_NAMESPACE names the copy.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/testing/workloads.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace dial9::unwind::testing::DIAL9_WORKLOADS_NAMESPACE {
namespace {

template <class T>
void keep(T const& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

std::minstd_rand& random_numbers() {
  static thread_local std::minstd_rand generator{42};
  return generator;
}

const std::vector<std::string>& strings() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 4000; ++i) {
      made.push_back(std::to_string(random_numbers()()) + "-longer-than-a-small-string");
    }
    return made;
  }();
  return all;
}

void allocate_and_free() {
  std::array<void*, 64> blocks;
  for (void*& block : blocks) {
    block = std::malloc(16 + random_numbers()() % 2048);
  }
  for (void* const block : blocks) {
    std::free(block);
  }
}

void copy_memory() {
  static std::vector<char> from(1 << 19);
  static std::vector<char> to(1 << 19);
  std::memcpy(to.data(), from.data(), from.size());
  keep(to[0]);
}

void fill_map() {
  std::map<std::string, int> map;
  for (int i = 0; i < 300; ++i) {
    map[strings()[static_cast<std::size_t>(i)]] = i;
  }
  keep(map);
}

void sort_strings() {
  std::vector<std::string> copy(strings().begin(), strings().begin() + 1500);
  std::sort(copy.begin(), copy.end());
  keep(copy);
}

void sort_by_callback() {
  std::array<int, 2048> numbers;
  for (int& number : numbers) {
    number = static_cast<int>(random_numbers()() % 100000);
  }
  std::qsort(numbers.data(), numbers.size(), sizeof(int), [](const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  keep(numbers);
}

void format_numbers() {
  std::array<char, 128> text;
  for (int i = 0; i < 50; ++i) {
    std::snprintf(text.data(), text.size(), "%d %s %.6f", i, "hello", i * 1.37);
    keep(text);
  }
}

void write_stream() {
  std::ostringstream out;
  for (int i = 0; i < 60; ++i) {
    out << i << ' ' << i * 1.5 << '\n';
  }
  keep(out);
}

void match_regex() {
  static const std::regex pattern("([a-z]+)-([0-9]+)");
  std::smatch match;
  const std::string text = "some words before abc-123 and after";
  keep(std::regex_search(text, match, pattern));
}

struct Unwound {
  ~Unwound() { keep(*this); }
  int value = 1;
};

void throw_from(int depth) {
  const Unwound guard;
  if (depth == 0) {
    throw std::runtime_error("as intended");
  }
  throw_from(depth - 1);
  keep(guard);
}

void throw_and_catch() {
  try {
    throw_from(8);
  } catch (const std::runtime_error& error) {
    keep(error);
  }
}

void compute() {
  double sum = 0;
  for (int i = 1; i < 400; ++i) {
    sum += std::sin(i) * std::exp(i * 1e-3) + std::pow(i, 1.3);
  }
  keep(sum);
}

// Hand-written assembly with hand-written unwind tables. Absent libcrypto, the same by memset.
void hash_bytes() {
  using Sha = unsigned char* (*)(const unsigned char*, std::size_t, unsigned char*);
  static const Sha sha256 = [] {
    void* const library = dlopen("libcrypto.so.3", RTLD_NOW);
    return library == nullptr ? nullptr : reinterpret_cast<Sha>(dlsym(library, "SHA256"));
  }();
  static std::vector<unsigned char> data(16 * 1024);
  std::array<unsigned char, 32> hash{};
  if (sha256 != nullptr) {
    sha256(data.data(), data.size(), hash.data());
  } else {
    std::memset(data.data(), 1, data.size());
  }
  keep(hash);
}

void call_kernel() {
  for (int i = 0; i < 50; ++i) {
    syscall(SYS_getppid);
  }
}

void fill_hash_map() {
  std::unordered_map<unsigned, int> map;
  for (int i = 0; i < 500; ++i) {
    map[static_cast<unsigned>(random_numbers()())] = i;
  }
  keep(map);
}

// A stack aligned to 64 bytes has its CFA behind a pointer (DRAP on g++, rbp on clang).
[[gnu::noinline]] int use_aligned(int depth) {
  alignas(64) std::array<int, 48> numbers;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = depth + static_cast<int>(i);
  }
  keep(numbers);
  return depth == 0 ? numbers[3] : use_aligned(depth - 1) + numbers[5];
}
void realign_stack() { keep(use_aligned(12)); }

// Frames of a size that is known at run time only.
[[gnu::noinline]] int use_variable(unsigned size, int depth) {
  auto* const bytes = static_cast<char*>(__builtin_alloca(size));
  std::memset(bytes, depth, size);
  keep(*bytes);
  return depth == 0 ? bytes[0] : use_variable(size + 16, depth - 1) + bytes[1];
}
void vary_frames() { keep(use_variable(64, 12)); }

// Prologues and epilogues, nothing else: a tree of calls that saves every register.
[[gnu::noinline]] std::uint64_t call_tree(std::uint64_t a, std::uint64_t b, int depth) {
  if (depth == 0) {
    return a ^ b;
  }
  const std::uint64_t left = call_tree(a + 1, b, depth - 1);
  const std::uint64_t right = call_tree(b, left, depth - 1);
  return left + 3 * right + a * b;
}
void call_and_return() { keep(call_tree(3, 5, 10)); }

[[gnu::noinline]] int recurse(int depth) {
  volatile int here = depth;
  return depth == 0 ? 1 : recurse(depth - 1) + here;
}
void recurse_deeply() { keep(recurse(300)); }

struct Node {
  virtual ~Node() = default;
  virtual int visit(int depth) const = 0;
};
struct Leaf : Node {
  int visit(int depth) const override { return depth; }
};
struct Inner : Node {
  explicit Inner(int depth)
      : left(depth == 0 ? std::unique_ptr<Node>(std::make_unique<Leaf>())
                        : std::make_unique<Inner>(depth - 1)) {}
  int visit(int depth) const override { return left->visit(depth + 1) + 1; }
  std::unique_ptr<Node> left;
};
void call_virtually() {
  const Inner root(20);
  const std::function<int(int)> call = [&root](int depth) { return root.visit(depth); };
  keep(call(1));
}

constexpr std::array kWorkloads{
    Workload{"malloc", allocate_and_free}, Workload{"memcpy", copy_memory},
    Workload{"map", fill_map}, Workload{"sort", sort_strings}, Workload{"qsort", sort_by_callback},
    Workload{"snprintf", format_numbers}, Workload{"ostringstream", write_stream},
    Workload{"regex", match_regex}, Workload{"exceptions", throw_and_catch},
    Workload{"math", compute}, Workload{"sha256", hash_bytes}, Workload{"syscalls", call_kernel},
    Workload{"unordered_map", fill_hash_map}, Workload{"aligned_frames", realign_stack},
    Workload{"variable_frames", vary_frames}, Workload{"prologues", call_and_return},
    Workload{"recursion", recurse_deeply}, Workload{"virtual_calls", call_virtually}};

}  // namespace

std::span<const Workload> workloads() { return kWorkloads; }

}  // namespace dial9::unwind::testing::DIAL9_WORKLOADS_NAMESPACE
