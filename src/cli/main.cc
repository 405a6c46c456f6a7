// `dial9`: reads, explains and serves traces. This file only parses the verb; each verb has a file.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  dial9::cli::ignore_sigpipe();
  CLI::App app{"dial9: what a flight recorder's trace says about a service"};
  app.set_version_flag("--version", "dial9 " DIAL9_VERSION ", trace format 1");
  app.require_subcommand(1);
  app.footer(dial9::cli::kExitCodeHelp);
  int exit_code = dial9::cli::kOk;
  dial9::cli::add_info(app, exit_code);
  dial9::cli::add_cat(app, exit_code);
  dial9::cli::add_diagnose(app, exit_code);
  dial9::cli::add_spans(app, exit_code);
  dial9::cli::add_recover(app, exit_code);
  dial9::cli::add_serve(app, exit_code);
  dial9::cli::add_doctor(app, exit_code);
  dial9::cli::add_snapshot(app, exit_code);
  dial9::cli::add_top(app, exit_code);
  for (CLI::App* verb : app.get_subcommands({})) {
    verb->footer(dial9::cli::kExitCodeHelp);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? dial9::cli::kOk : dial9::cli::kUsage;
  }
  return dial9::cli::is_output_lost() ? dial9::cli::kOutputLost : exit_code;
}
