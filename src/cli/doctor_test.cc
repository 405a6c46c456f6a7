// Each check of `dial9 doctor` over facts of a sound machine, with one thing broken at a time.
// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/unique_fd.h"
#include "cli/doctor_checks.h"
#include "cli/doctor_elf.h"
#include "cli/doctor_facts.h"

namespace dial9::cli {
namespace {

using Bytes = std::vector<std::uint8_t>;

ClockFacts sound_clock() { return {"", "tsc", false, 1'000, 90, 0}; }
RecordingFacts sound_recording() {
  return {"", {{"events", 100, 100, false}, {"samples", 1, 7, true}}, 0, ""};
}
LimitFacts sound_limits() {
  return {1'024, kNoLimit, kNoLimit, 8 << 20, 15'000, 100 << 20, 16 << 20};
}
ProgramFacts sound_program() {
  ProgramFacts facts;
  facts.path = "/bin/service";
  facts.elf = {"abcd", "", true, true, true, 100, 95};
  return facts;
}

Verdict worst_of(const std::vector<Check>& checks) {
  Verdict worst = Verdict::kOk;
  for (const Check& check : checks) worst = std::max(worst, check.verdict);
  return worst;
}

TEST(DoctorChecks, ASoundMachineIsOk) {
  EXPECT_EQ(check_environment({true, {}}).verdict, Verdict::kOk);
  EXPECT_EQ(check_kernel({"Linux", "6.1.0-18-amd64", "x86_64"}).verdict, Verdict::kOk);
  EXPECT_EQ(check_clock(sound_clock()).verdict, Verdict::kOk);
  EXPECT_EQ(check_directory({false, "/d", "", "ext4", false}).verdict, Verdict::kOk);
  EXPECT_EQ(check_space({false, "", 1 << 30, 0, 0, std::uint64_t{2} << 30}).verdict, Verdict::kOk);
  EXPECT_EQ(check_lock({false, "", true, {}}).verdict, Verdict::kOk);
  EXPECT_EQ(check_recording(sound_recording()).verdict, Verdict::kOk);
  EXPECT_EQ(worst_of(check_limits(sound_limits())), Verdict::kOk);
  EXPECT_EQ(check_sched({"", 5}).verdict, Verdict::kOk);
  EXPECT_EQ(check_perf({1, 0, 0, true}).verdict, Verdict::kOk);
  EXPECT_EQ(worst_of(check_program(sound_program())), Verdict::kOk);
}

TEST(DoctorChecks, AVariableThatIsNotUnderstoodIsWrong) {
  const Check check = check_environment({true, {"DIAL9_TRACE_DIRR: there is no such variable"}});
  EXPECT_EQ(check.verdict, Verdict::kWrong);
  EXPECT_NE(check.seen.find("DIAL9_TRACE_DIRR"), std::string::npos);
}

TEST(DoctorChecks, RecordingThatIsOffIsAWarningWithTheCure) {
  const Check check = check_environment({false, {}});
  EXPECT_EQ(check.verdict, Verdict::kWarning);
  EXPECT_NE(check.cure.find("DIAL9_ENABLED=1"), std::string::npos);
}

TEST(DoctorChecks, KernelsAreJudgedByTheirNumber) {
  EXPECT_EQ(check_kernel({"Linux", "3.10.0", "x86_64"}).verdict, Verdict::kWrong);
  EXPECT_EQ(check_kernel({"Linux", "3.17", "x86_64"}).verdict, Verdict::kOk);
  EXPECT_EQ(check_kernel({"Linux", "new", "x86_64"}).verdict, Verdict::kUnknown);
  EXPECT_EQ(check_kernel({"Darwin", "23.1.0", "arm64"}).verdict, Verdict::kWrong);
}

TEST(DoctorChecks, AClockThatWentBackwardsIsWrongHoweverSmallItsError) {
  ClockFacts facts = sound_clock();
  facts.backward_steps = 1;
  EXPECT_EQ(check_clock(facts).verdict, Verdict::kWrong);
}

TEST(DoctorChecks, AClockBeyondItsBoundIsAWarning) {
  ClockFacts facts = sound_clock();
  facts.worst_error_ns = 1'001;
  EXPECT_EQ(check_clock(facts).verdict, Verdict::kWarning);
}

TEST(DoctorChecks, ATscThatWasAskedForAndRefusedIsWrong) {
  ClockFacts facts = sound_clock();
  facts.description = "kernel: the time-stamp counter isn't invariant";
  EXPECT_EQ(check_clock(facts).verdict, Verdict::kOk);
  facts.is_tsc_asked_for = true;
  EXPECT_EQ(check_clock(facts).verdict, Verdict::kWrong);
}

TEST(DoctorChecks, AClockThatWasNotReadIsUnknown) {
  EXPECT_EQ(check_clock({}).verdict, Verdict::kUnknown);
  EXPECT_EQ(check_clock({"the recorder didn't start", "", false, 0, 0, 0}).verdict,
            Verdict::kUnknown);
}

TEST(DoctorChecks, ADirectoryThatCannotBeWrittenIsWrong) {
  const Check check =
      check_directory({false, "/d", "can't create '/d/x': Permission denied", "", false});
  EXPECT_EQ(check.verdict, Verdict::kWrong);
  EXPECT_NE(check.cure.find("DIAL9_TRACE_DIR"), std::string::npos);
}

TEST(DoctorChecks, TheCureOfADirectoryIsThatOfItsError) {
  const auto cure = [](int error) {
    return check_directory({false, "/d", "can't", "", false, error}).cure;
  };
  EXPECT_EQ(cure(ENOSPC).find("free space there"), 0U) << cure(ENOSPC);
  EXPECT_EQ(cure(EROFS).find("mount it for writing"), 0U) << cure(EROFS);
  EXPECT_EQ(cure(EACCES).find("let this user write there"), 0U) << cure(EACCES);
}

class Memory : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  Memory() { write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n"); }
  ~Memory() override { std::filesystem::remove_all(root_); }
  const std::string root_ =
      ::testing::TempDir() + "dial9-doctor-memory-" + std::to_string(::getpid());
};

TEST_F(Memory, IsWhatTheMachineHasWhereNoGroupLeavesLess) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/b/memory.current", "1\n");
  EXPECT_EQ(available_memory(root_), 8000U * 1024);
}

TEST_F(Memory, IsWhatAGroupAroundTheOwnOneLeaves) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/memory.max", "1000000\n");
  write("/sys/fs/cgroup/a/memory.current", "400000\n");
  EXPECT_EQ(available_memory(root_), 600'000U);
}

TEST_F(Memory, OfGroupsOfVersion1IsSeenToo) {
  write("/proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/a\n0::/\n");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000\n");
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1500000\n");
  EXPECT_EQ(available_memory(root_), 0U);
}

TEST(DoctorChecks, ARemoteFileSystemIsAWarning) {
  EXPECT_EQ(check_directory({false, "/d", "", "nfs", true}).verdict, Verdict::kWarning);
}

TEST(DoctorChecks, ABudgetBeyondTheDiskIsWrongAndSaysByHowMuch) {
  const Check check = check_space({false, "", 1 << 30, 0, 0, 512 << 20});
  EXPECT_EQ(check.verdict, Verdict::kWrong);
  EXPECT_NE(check.cure.find("512"), std::string::npos);
}

TEST(DoctorChecks, WhatEarlierRunsHoldIsInTheBudget) {
  EXPECT_EQ(check_space({false, "", 1 << 30, 0, 600 << 20, 512 << 20}).verdict, Verdict::kOk);
}

TEST(DoctorChecks, TheMemoryRingNeedsRoomForTheThreadBuffersToo) {
  EXPECT_EQ(check_space({true, "", 100, 50, 0, 149}).verdict, Verdict::kWrong);
  EXPECT_EQ(check_space({true, "", 100, 50, 0, 150}).verdict, Verdict::kOk);
}

TEST(DoctorChecks, ALockGrantedTwiceIsWrong) {
  EXPECT_EQ(check_lock({false, "", false, {}}).verdict, Verdict::kWrong);
  EXPECT_EQ(check_lock({false, "the recorder didn't start", false, {}}).verdict, Verdict::kUnknown);
}

TEST(DoctorChecks, OtherRecordersInTheDirectoryAreNamed) {
  EXPECT_NE(check_lock({false, "", true, {12, 34}}).seen.find("12, 34"), std::string::npos);
}

TEST(DoctorChecks, OneEventTooFewOrTooManyIsWrong) {
  RecordingFacts facts = sound_recording();
  facts.parts[0].seen = 99;
  EXPECT_EQ(check_recording(facts).verdict, Verdict::kWrong);
  facts.parts[0].seen = 101;
  EXPECT_EQ(check_recording(facts).verdict, Verdict::kWrong);
}

TEST(DoctorChecks, ASourceThatShouldProduceAndMakesNothingIsWrong) {
  RecordingFacts facts = sound_recording();
  facts.parts[1].seen = 0;
  EXPECT_EQ(check_recording(facts).verdict, Verdict::kWrong);
}

TEST(DoctorChecks, ADroppedEventIsWrong) {
  RecordingFacts facts = sound_recording();
  facts.dropped = 1;
  EXPECT_EQ(check_recording(facts).verdict, Verdict::kWrong);
}

TEST(DoctorChecks, ARecorderThatDoesNotStartIsWrongAndWhatWasNotTriedUnknown) {
  EXPECT_EQ(check_recording({"no space", {}, 0, ""}).verdict, Verdict::kWrong);
  EXPECT_EQ(check_recording({}).verdict, Verdict::kUnknown);
}

TEST(DoctorChecks, EachLimitIsJudgedByItself) {
  const auto broken = [](auto change) {
    LimitFacts facts = sound_limits();
    change(facts);
    std::string names;
    for (const Check& check : check_limits(facts)) {
      if (check.verdict != Verdict::kOk)
        names += check.name + "=" + std::string(to_string(check.verdict));
    }
    return names;
  };
  EXPECT_EQ(broken([](LimitFacts& f) { f.open_files = 64; }), "limit: open files=warning");
  EXPECT_EQ(broken([](LimitFacts& f) { f.file_bytes = 1 << 20; }), "limit: file size=wrong");
  EXPECT_EQ(broken([](LimitFacts& f) { f.address_bytes = 1 << 20; }), "limit: address space=wrong");
  EXPECT_EQ(broken([](LimitFacts& f) { f.locked_bytes = 0; }), "limit: locked memory=warning");
  EXPECT_EQ(broken([](LimitFacts& f) { f.queued_signals = 8; }), "limit: queued signals=warning");
}

TEST(DoctorChecks, SchedulerNumbersThatStandStillAreAWarning) {
  EXPECT_EQ(check_sched({"", 0}).verdict, Verdict::kWarning);
  EXPECT_EQ(check_sched({"can't read it", 0}).verdict, Verdict::kWarning);
}

TEST(DoctorChecks, PerfThatIsRefusedNamesTheSetting) {
  const Check check = check_perf({3, 0, EACCES, false});
  EXPECT_EQ(check.verdict, Verdict::kWarning);
  EXPECT_NE(check.cure.find("perf_event_paranoid"), std::string::npos);
  EXPECT_EQ(check_perf({2, 0, ENOSYS, false}).verdict, Verdict::kWarning);
  EXPECT_EQ(check_perf({2, 0, 0, false}).verdict, Verdict::kWarning);
  EXPECT_EQ(check_perf({1, 1, 0, true}).verdict, Verdict::kWarning);
}

TEST(DoctorChecks, AProgramIsJudgedOnThreeCounts) {
  ProgramFacts facts = sound_program();
  facts.elf.framed_functions = 10;
  EXPECT_EQ(check_program(facts)[0].verdict, Verdict::kWarning);
  facts = sound_program();
  facts.elf.has_debug_info = false;
  EXPECT_EQ(check_program(facts)[1].verdict, Verdict::kWarning);
  facts.separate_debug_file = "/usr/lib/debug/x";
  EXPECT_EQ(check_program(facts)[1].verdict, Verdict::kOk);
  facts = sound_program();
  facts.elf.build_id.clear();
  EXPECT_EQ(check_program(facts)[2].verdict, Verdict::kWarning);
}

TEST(DoctorChecks, AStrippedProgramsFramesAreUnknown) {
  ProgramFacts facts = sound_program();
  facts.elf.functions = 3;
  EXPECT_EQ(check_program(facts)[0].verdict, Verdict::kUnknown);
}

TEST(DoctorReport, TextAndJsonSayTheSame) {
  Check check;
  check.name = "space";
  check.verdict = Verdict::kWrong;
  check.expected = "room";
  check.seen = "\"none\"";
  check.cure = "free some";
  EXPECT_EQ(doctor_text({check}),
            "wrong    space\n"
            "         expected  room\n"
            "         seen      \"none\"\n"
            "         cure      free some\n"
            "\n1 check: 1 wrong, 0 warnings, 0 unknown\n");
  const auto parsed = nlohmann::json::parse(doctor_json({check}));
  EXPECT_EQ(parsed["wrong"], 1);
  EXPECT_EQ(parsed["checks"][0]["seen"], "\"none\"");
  EXPECT_EQ(parsed["checks"][0]["verdict"], "wrong");
}

TEST(DoctorFacts, ALineOfTheLockTableIsReadByItsParts) {
  const HeldLock lock = parse_lock_line("3: FLOCK  ADVISORY  WRITE 812 fd:02:77 0 EOF");
  EXPECT_TRUE(lock.is_flock);
  EXPECT_EQ(lock.pid, 812U);
  EXPECT_EQ(lock.device_major, 0xfdU);
  EXPECT_EQ(lock.device_minor, 2U);
  EXPECT_EQ(lock.inode, 77U);
  EXPECT_FALSE(parse_lock_line("3: POSIX  ADVISORY  WRITE 812 fd:02:77 0 EOF").is_flock);
  EXPECT_FALSE(parse_lock_line("garbage").is_flock);
  EXPECT_EQ(parse_lock_line("3: FLOCK  ADVISORY  WRITE -1 fd:02:77 0 EOF").pid, 0U);
}

TEST(DoctorChecks, WhoElseRecordsIsUnknownWhereTheLocksCannotBeMatched) {
  LockFacts facts;
  facts.is_exclusive = true;
  facts.knows_others = false;
  EXPECT_EQ(check_lock(facts).verdict, Verdict::kUnknown);
  EXPECT_EQ(check_lock(facts).seen.find("no other recorder"), std::string::npos);
  facts.knows_others = true;
  EXPECT_EQ(check_lock(facts).verdict, Verdict::kOk);
  EXPECT_NE(check_lock(facts).seen.find("no other recorder writes here"), std::string::npos);
}

TEST(DoctorFacts, LocksAreMatchedOnlyWhereOurOwnIsSeen) {
  const std::string text =
      "1: FLOCK  ADVISORY  WRITE 812 fd:02:77 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 900 fd:02:78 0 EOF\n";
  const std::vector<LockedFile> files = {{0xfd, 2, 77}};
  const LiveRecorders seen = match_locks(text, files, LockedFile{0xfd, 2, 78});
  EXPECT_TRUE(seen.is_known);
  EXPECT_EQ(seen.pids, std::vector<std::uint32_t>{812});
  EXPECT_FALSE(match_locks(text, {{0, 41, 77}}, LockedFile{0, 41, 78}).is_known);  // btrfs
  EXPECT_FALSE(match_locks("", files, LockedFile{0xfd, 2, 78}).is_known);
  EXPECT_FALSE(match_locks(text, files, std::nullopt).is_known);
  EXPECT_TRUE(match_locks("", {}, std::nullopt).is_known);  // no run is there
}

TEST(DoctorFacts, TheTrialLeavesNothingBehind) {
  const std::string root = ::testing::TempDir() + "dial9-doctor-test-" + std::to_string(::getpid());
  {
    const TrialDirectory trial(root + "/a/b");
    ASSERT_EQ(trial.error(), "");
    EXPECT_EQ(look_at_directory(root + "/a/b", trial).error, "");
  }
  EXPECT_FALSE(std::filesystem::exists(root));
}

TEST(DoctorFacts, ADirectoryThatCannotBeMadeSaysWhy) {
  const TrialDirectory trial("/proc/self/status/traces");
  EXPECT_NE(trial.error(), "");
  EXPECT_NE(look_at_directory("/proc/self/status/traces", trial).error, "");
}

TEST(DoctorElf, ProloguesOfBothMachinesAreKnown) {
  const Bytes plain = {0x55, 0x48, 0x89, 0xe5};
  const Bytes with_landing_pad = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5};
  const Bytes none = {0x41, 0x54, 0x53, 0x48, 0x83, 0xec, 0x08};
  const Bytes arm = {0xfd, 0x7b, 0xbe, 0xa9, 0xfd, 0x03, 0x00, 0x91};
  EXPECT_TRUE(sets_up_frame(plain, EM_X86_64));
  EXPECT_TRUE(sets_up_frame(with_landing_pad, EM_X86_64));
  EXPECT_FALSE(sets_up_frame(none, EM_X86_64));
  EXPECT_TRUE(sets_up_frame(arm, EM_AARCH64));
  EXPECT_FALSE(sets_up_frame(plain, EM_AARCH64));
  EXPECT_FALSE(sets_up_frame({}, EM_X86_64));
}

// A file with a build id note, .debug_info, and two functions of which one sets up a frame.
Bytes small_elf() {
  Bytes file(sizeof(Elf64_Ehdr));
  const auto put = [&](const void* bytes, std::size_t size) {
    const std::size_t at = file.size();
    const auto* from = static_cast<const std::uint8_t*>(bytes);
    file.insert(file.end(), from, from + size);
    return at;
  };
  Bytes code(64, 0x90);
  code[0] = 0x55;
  std::memcpy(&code[1], "\x48\x89\xe5", 3);
  const char names[] = "\0.text\0.note\0.debug_info\0.symtab\0.strtab";
  const std::size_t code_at = put(code.data(), code.size());
  const Elf64_Nhdr note{4, 4, NT_GNU_BUILD_ID};
  const std::size_t note_at = put(&note, sizeof note);
  put("GNU\0\xab\xcd\x01\x23", 8);
  const std::size_t debug_at = put("1234", 4);
  const std::size_t names_at = put(names, sizeof names);
  Elf64_Sym symbols[3] = {};
  for (int i = 1; i < 3; ++i) {
    symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbols[i].st_shndx = 1;
    symbols[i].st_size = 32;
    symbols[i].st_value = 0x1000 + static_cast<std::uint64_t>(i - 1) * 32;
  }
  const std::size_t symbols_at = put(symbols, sizeof symbols);
  Elf64_Shdr sections[6] = {};
  const auto section = [&](int i, std::uint32_t name, std::uint32_t type, std::size_t at,
                           std::size_t size) {
    sections[i].sh_name = name;
    sections[i].sh_type = type;
    sections[i].sh_offset = at;
    sections[i].sh_size = size;
  };
  section(1, 1, SHT_PROGBITS, code_at, code.size());
  sections[1].sh_addr = 0x1000;
  sections[1].sh_flags = SHF_EXECINSTR;
  section(2, 7, SHT_NOTE, note_at, sizeof note + 8);
  section(3, 13, SHT_PROGBITS, debug_at, 4);
  section(4, 25, SHT_SYMTAB, symbols_at, sizeof symbols);
  sections[4].sh_link = 5;
  section(5, 33, SHT_STRTAB, names_at, sizeof names);
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_machine = EM_X86_64;
  head.e_shoff = put(sections, sizeof sections);
  head.e_shnum = 6;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shstrndx = 5;
  std::memcpy(file.data(), &head, sizeof head);
  return file;
}

TEST(DoctorElf, BuildIdDebugInfoAndFramesAreFound) {
  const auto facts = read_elf(small_elf());
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->build_id, "abcd0123");
  EXPECT_TRUE(facts->has_debug_info);
  EXPECT_TRUE(facts->has_symbols);
  EXPECT_EQ(facts->functions, 2U);
  EXPECT_EQ(facts->framed_functions, 1U);
}

TEST(DoctorElf, AFileThatIsCutAnywhereIsSafeToLookAt) {
  const Bytes whole = small_elf();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto facts = read_elf(std::span(whole).first(size));
    EXPECT_FALSE(facts) << size;  // its section table lies at the end
  }
}

TEST(DoctorElf, AFileWithAnyByteChangedIsSafeToLookAt) {
  const Bytes whole = small_elf();
  std::uint64_t readable = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= 0xff;
    readable += read_elf(changed) ? 1 : 0;
  }
  EXPECT_GT(readable, 0U);
}

TEST(DoctorElf, OurOwnProgramSetsUpFramePointers) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer's runtime, a third of the program's functions, doesn't";
#endif
  const ProgramFacts facts = look_at_program(DIAL9_CLI);
  ASSERT_EQ(facts.error, "");
  if (!facts.elf.can_judge_frames) GTEST_SKIP() << "prologues of this machine aren't known";
  EXPECT_GT(facts.elf.functions, 100U);
  EXPECT_EQ(check_program(facts)[0].verdict, Verdict::kOk)
      << facts.elf.framed_functions << " of " << facts.elf.functions;
}

TEST(DoctorFacts, AProgramThatIsNotThereIsUnknownWithTheReason) {
  const ProgramFacts facts = look_at_program("/no/such/program");
  EXPECT_NE(facts.error, "");
  EXPECT_EQ(check_program(facts)[0].verdict, Verdict::kUnknown);
}

}  // namespace
}  // namespace dial9::cli
