// One function a verb: adds its subcommand to the parser. The callback that runs it leaves its exit
// code in `exit_code`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace dial9::cli {

void add_info(CLI::App& app, int& exit_code);
void add_cat(CLI::App& app, int& exit_code);
void add_diagnose(CLI::App& app, int& exit_code);
void add_recover(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_snapshot(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_spans(CLI::App& app, int& exit_code);

}  // namespace dial9::cli
