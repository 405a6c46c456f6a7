// `dial9`: reads, explains and serves traces. This file only parses the verb; each verb has a file.
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "cli/arguments.h"
#include "cli/exit_code.h"
#include "cli/flame_options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "symbolize/dwarf_worker.h"

// By now the terminal is what it was.
static void say_own_fault(const std::exception& error) {
  std::fprintf(stderr, "dial9: %s; a fault of dial9's own, please report it\n", error.what());
}

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view(dial9::cli::kDwarfWorkerArgument)) {
    try {
      return dial9::symbolize::run_dwarf_worker();
    } catch (const std::bad_alloc&) {
      return dial9::cli::kInternal;  // who asked it says what that leaves out
    }
  }
  dial9::cli::let_writes_fail();
  ::signal(SIGCHLD, SIG_DFL);  // where it is ignored a dead worker's number is soon another's
  dial9::cli::Arguments arguments("dial9: what a flight recorder's trace says about a service",
                                  "dial9 " DIAL9_VERSION ", trace format 1",
                                  dial9::cli::kExitCodeHelp);
  dial9::cli::add_info(arguments);
  dial9::cli::add_cat(arguments);
  dial9::cli::add_diagnose(arguments);
  dial9::cli::add_spans(arguments);
  dial9::cli::add_flame(arguments);
  dial9::cli::add_heap(arguments);
  dial9::cli::add_offcpu(arguments);
  dial9::cli::add_recover(arguments);
  dial9::cli::add_serve(arguments);
  dial9::cli::add_doctor(arguments);
  dial9::cli::add_snapshot(arguments);
  dial9::cli::add_top(arguments);
  int exit_code = dial9::cli::kInternal;
  try {
    exit_code = arguments.parse(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("dial9: out of memory: give it fewer files, or let it take more (ulimit -v)\n",
               stderr);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {  // a thread was refused
      std::fputs("dial9: no thread could be started: let it have more memory or processes "
                 "(ulimit -v, -u)\n", stderr);
    } else {
      say_own_fault(error);
    }
  } catch (const std::exception& error) {
    say_own_fault(error);
  }
  return dial9::cli::is_output_lost() ? dial9::cli::kOutputLost : exit_code;
}
