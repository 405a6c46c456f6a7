// Loads two shared objects that each have the recorder inside, records with both, and unloads them
// while threads that recorded still live. two_copies A.so B.so DIR_A DIR_B; exit 0: all went well.
// With a fifth argument they stay, and the threads end one by one, the main one first: by
// pthread_exit(), or (a number) by the plain exit call with that code.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

struct Copy {
  void* handle;
  bool (*start)(const char*);
  void (*record)(std::uint64_t);
  bool (*is_recording)();
  bool (*stop)();
};

template <class F>
void look_up(void* handle, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(handle, name));
}

Copy load(const char* path) {
  Copy copy{};
  copy.handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (copy.handle == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    ::_exit(10);
  }
  look_up(copy.handle, "copy_start", copy.start);
  look_up(copy.handle, "copy_record", copy.record);
  look_up(copy.handle, "copy_is_recording", copy.is_recording);
  look_up(copy.handle, "copy_stop", copy.stop);
  return copy;
}

int end_of_fork(const Copy& a, const Copy& b) {
  const pid_t child = ::fork();
  if (child == 0) {
    a.record(1'000'000);
    b.record(1'000'000);
    ::_exit(a.is_recording() || b.is_recording() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

void record_both(const Copy& a, const Copy& b, std::uint64_t from) {
  for (std::uint64_t i = from; i < from + 500; ++i) {
    a.record(i);
    b.record(i);
  }
}

[[noreturn]] void end_thread_by_thread(const Copy& a, const Copy& b, std::string_view how) {
  record_both(a, b, 0);
  std::thread([a, b] {  // by value: the main thread's frames go
    record_both(a, b, 500);
  }).detach();
  if (how == "pthread_exit") ::pthread_exit(nullptr);
  for (;;) ::syscall(SYS_exit, std::atoi(how.data()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  const Copy a = load(argv[1]);
  const Copy b = load(argv[2]);
  if (!a.start(argv[3]) || !b.start(argv[4])) return 3;
  if (argc == 6) end_thread_by_thread(a, b, argv[5]);
  std::atomic<int> recorded{0};
  std::atomic<bool> is_unloaded{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 500; ++i) {
        a.record(t * 1000 + i);
        b.record(t * 1000 + i);
      }
      recorded.fetch_add(1);
      while (!is_unloaded.load()) std::this_thread::yield();
    });  // their exit hooks run when both are unloaded
  }
  while (recorded.load() < 4) std::this_thread::yield();
  if (end_of_fork(a, b) != 0) return 4;
  if (!a.stop() || !b.stop()) return 5;
  ::dlclose(a.handle);
  ::dlclose(b.handle);
  is_unloaded = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}
