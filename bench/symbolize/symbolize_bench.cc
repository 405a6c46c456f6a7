// Functions, inlined ones and lines of 10,000 addresses of a program of about 100 MB, each time
// from nothing, beside the read of the file and addr2line of the same addresses. DIAL9_BENCH_BINARY
// names another program.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbolizer.h"

namespace dial9::symbolize {
namespace {

constexpr std::size_t kAddresses = 10'000;
constexpr const char* kWorker = "--read-debug-information";

std::string program() {
  const char* const named = std::getenv("DIAL9_BENCH_BINARY");
  return named != nullptr ? named : DIAL9_BIG;
}

struct Input {
  std::string build_id;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> addresses;  // each once, in random order
};

Input make_input() {
  Input input;
  const UniqueFd fd(::open(program().c_str(), O_RDONLY | O_CLOEXEC));
  input.bytes = regular_file_bytes(fd.get()).value_or(0);
  const FileReader reader = reader_of(fd.get());
  const auto elf = ElfFile::open(reader, input.bytes);
  if (!elf) return input;
  input.build_id = elf->build_id();
  std::minstd_rand random(5);
  for (const ElfFile::Section& section : elf->sections()) {
    if (section.header.sh_type != SHT_SYMTAB) continue;
    std::vector<Elf64_Sym> functions;
    const std::vector<std::uint8_t> rows = elf->bytes(section);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= rows.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, rows.data() + at, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size != 0) {
        functions.push_back(symbol);
      }
    }
    for (std::size_t i = 0; i < 20 * kAddresses && !functions.empty(); ++i) {
      const Elf64_Sym& function = functions[random() % functions.size()];
      input.addresses.push_back(function.st_value + random() % function.st_size);
    }
  }
  std::sort(input.addresses.begin(), input.addresses.end());
  input.addresses.erase(std::unique(input.addresses.begin(), input.addresses.end()),
                        input.addresses.end());
  std::shuffle(input.addresses.begin(), input.addresses.end(), random);
  input.addresses.resize(std::min(input.addresses.size(), kAddresses));
  return input;
}

const Input& input() {
  static const Input made = make_input();
  return made;
}

double peak_mb(__rusage_who who) {
  rusage used{};
  ::getrusage(who, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

// Of this process and of those that it waited for.
double cpu_ms() {
  double ms = 0;
  for (const __rusage_who who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    ms += static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
          static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
  }
  return ms;
}

void read_of_the_file(benchmark::State& state) {
  std::vector<char> part(1 << 20);
  for (auto _ : state) {
    const UniqueFd fd(::open(program().c_str(), O_RDONLY | O_CLOEXEC));
    while (::read(fd.get(), part.data(), part.size()) > 0) benchmark::DoNotOptimize(part.data());
  }
  state.counters["mb"] = static_cast<double>(input().bytes) / (1 << 20);
}

// "mb": of all processes, what this one has beyond what it had before; of two readers at most twice
// the larger. "cpu_ms": of all, an iteration.
void symbolize_addresses(benchmark::State& state) {
  const Input& in = input();
  static const double before_mb = peak_mb(RUSAGE_SELF);
  const SymbolizerOptions options{.dwarf = {.command = {"/proc/self/exe", kWorker}}};
  const double before_ms = cpu_ms();
  std::size_t frames = 0;
  std::size_t lines = 0;
  for (auto _ : state) {
    Symbolizer symbolizer(options);
    symbolizer.expect(program(), in.build_id, in.addresses);
    frames = 0;
    lines = 0;
    for (const std::uint64_t address : in.addresses) {
      const auto found = symbolizer.frames(program(), in.build_id, address, false);
      frames += found.size();
      lines += !found.empty() && found.front().at_line != 0 ? 1 : 0;
    }
    for (const std::string& note : symbolizer.notes()) state.SkipWithError(note.c_str());
  }
  const auto count = static_cast<double>(in.addresses.size());
  state.counters["addresses"] = count;
  state.counters["frames"] = static_cast<double>(frames) / count;
  state.counters["lines"] = static_cast<double>(lines) / count;
  const double own_mb = peak_mb(RUSAGE_SELF) - before_mb;
  state.counters["reader_mb"] = peak_mb(RUSAGE_CHILDREN);
  state.counters["mb"] = peak_mb(RUSAGE_CHILDREN) * (options.readers > 1 ? 2 : 1) + own_mb;
  state.counters["cpu_ms"] = (cpu_ms() - before_ms) / static_cast<double>(state.iterations());
}

// Of the symbol table alone: no inlined functions, no lines, no process that reads them.
void name_addresses(benchmark::State& state) {
  const Input& in = input();
  std::size_t named = 0;
  for (auto _ : state) {
    Symbolizer symbolizer({});
    named = 0;
    for (const std::uint64_t address : in.addresses) {
      named += symbolizer.frames(program(), in.build_id, address, false).size();
    }
  }
  state.counters["named"] = static_cast<double>(named) / static_cast<double>(in.addresses.size());
}

void addr2line(benchmark::State& state) {
  const std::string list = std::string(DIAL9_BIG) + ".addresses";
  if (std::FILE* const file = std::fopen(list.c_str(), "w"); file != nullptr) {
    for (const std::uint64_t address : input().addresses) {
      std::fprintf(file, "0x%llx\n", static_cast<unsigned long long>(address));
    }
    std::fclose(file);
  }
  const std::string command = "addr2line -f -i -C -e '" + program() + "' < '" + list + "'";
  for (auto _ : state) {
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::array<char, 65536> part;
    while (std::fread(part.data(), 1, part.size(), pipe) != 0) benchmark::DoNotOptimize(part);
    if (::pclose(pipe) != 0) state.SkipWithError("addr2line failed");
  }
}

BENCHMARK(read_of_the_file)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(name_addresses)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(2);
BENCHMARK(symbolize_addresses)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(2);
BENCHMARK(addr2line)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);

}  // namespace
}  // namespace dial9::symbolize

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == dial9::symbolize::kWorker) {
    return dial9::symbolize::run_dwarf_worker();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
