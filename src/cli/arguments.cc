// See arguments.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <dirent.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <limits>
#include <sstream>

#include "analysis/json_text.h"
#include "base/os_error.h"
#include "cli/durations.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/output.h"

namespace dial9::cli {
namespace {

// Before CLI11 reads it, which takes -1 for the largest number, what is too large likewise, and 010
// for eight.
template <class Number>
std::string check_number(const std::string& text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range && stop == end) {
    return "'" + text + "' is too large: at most " +
           std::to_string(std::numeric_limits<Number>::max());
  }
  const bool has_zeros = text.size() > 1 && text.front() == '0';
  return error == std::errc() && stop == end && !has_zeros
             ? ""
             : "'" + text + "' is no number: give decimal digits, such as 17";
}

std::string check_path(const std::string& text) {
  return text.empty() ? "the name is empty: give a path" : "";
}

Result<void> look_into(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    DIR* const open = ::opendir(folder.c_str());
    if (open == nullptr) return os_error(errno, "look into", folder, "give a folder");
    ::closedir(open);
  }
  return {};
}

}  // namespace

Argument& Argument::required() {
  option_->required();
  return *this;
}

Argument& Argument::with_default_shown() {
  option_->capture_default_str();
  return *this;
}

Argument& Argument::once_each() {
  option_->allow_extra_args(false);
  return *this;
}

Argument& Argument::taking(int values) {
  option_->expected(values);
  return *this;
}

Argument& Argument::in_range(std::uint64_t first, std::uint64_t last) {
  option_->check(CLI::Range(first, last));
  return *this;
}

Argument& Argument::noted_in(bool& is_given) {
  option_->each([&is_given](const std::string&) { is_given = true; });
  return *this;
}

Argument& Argument::positive() {
  option_->check([](const std::string& text) {
    const bool is_positive = text.find_first_not_of("0123456789") == std::string::npos &&
                             text.find_first_not_of('0') != std::string::npos;
    return is_positive ? std::string() : "'" + text + "' is no number from 1 up";
  });
  return *this;
}

Argument& Argument::one_of(const std::vector<std::string>& choices) {
  option_->check(CLI::IsMember(choices));
  return *this;
}

Argument& Argument::check(const ArgumentCheck& check) {
  option_->check(check);
  return *this;
}

template <class Number>
Argument Verb::number(const std::string& name, Number& into, const std::string& what) {
  return Argument(app_->add_option(name, into, what)).check(check_number<Number>);
}
template Argument Verb::number(const std::string&, std::uint16_t&, const std::string&);
template Argument Verb::number(const std::string&, std::uint32_t&, const std::string&);
template Argument Verb::number(const std::string&, std::uint64_t&, const std::string&);

Argument Verb::text(const std::string& name, std::string& into, const std::string& what) {
  return Argument(app_->add_option(name, into, what));
}

Argument Verb::texts(const std::string& name, std::vector<std::string>& into,
                     const std::string& what) {
  return Argument(app_->add_option(name, into, what));
}

Argument Verb::path(const std::string& name, std::string& into, const std::string& what) {
  return text(name, into, what).check(check_path);
}

Argument Verb::paths(const std::string& name, std::vector<std::string>& into,
                     const std::string& what) {
  return texts(name, into, what).check(check_path);
}

Argument Verb::folders(const std::string& name, std::vector<std::string>& into,
                       const std::string& what) {
  preconditions_->push_back([&into] { return look_into(into); });
  return paths(name, into, what);
}

Argument Verb::duration(const std::string& name, std::string& into, const std::string& what) {
  return text(name, into, what).check(check_duration);
}

void Verb::flag(const std::string& name, bool& into, const std::string& what) {
  app_->add_flag(name, into, what);
}

struct Arguments::State {
  State(const std::string& description, const std::string& version, const std::string& given)
      : app(description), footer(given) {
    app.set_version_flag("--version", version);
    app.require_subcommand(1);
    app.footer(footer);
  }
  CLI::App app;
  std::string footer;
  int exit_code = kOk;
};

Arguments::Arguments(const std::string& description, const std::string& version,
                     const std::string& footer)
    : state_(std::make_unique<State>(description, version, footer)) {}
Arguments::~Arguments() = default;

Verb Arguments::add_verb(const std::string& name, const std::string& what,
                         std::function<int()> run) {
  CLI::App* verb = state_->app.add_subcommand(name, what);
  verb->footer(state_->footer);
  const auto preconditions = std::make_shared<std::vector<Verb::Precondition>>();
  verb->callback([state = state_.get(), name, preconditions, run = std::move(run)] {
    for (const Verb::Precondition& precondition : *preconditions) {
      if (const Result<void> holds = precondition(); !holds) {
        report_error(name.c_str(), holds.error());
        state->exit_code = kUnreadable;
        return;
      }
    }
    state->exit_code = run();
  });
  return {verb, preconditions};
}

int Arguments::parse(int argc, char** argv) {
  const auto is_meant = [&](const CLI::App* verb) { return verb->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && state_->app.get_subcommands(is_meant).empty()) {
    std::fprintf(stderr, "dial9: there is no verb '%s'; `dial9 --help` lists them\n",
                 analysis::to_printable(argv[1]).c_str());
    return kUsage;
  }
  try {
    state_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream problem;
    const int code = state_->app.exit(error, out, problem);
    std::fputs(problem.str().c_str(), stderr);
    write_out(out.str());
    flush_out();
    return code == 0 ? kOk : kUsage;
  }
  return state_->exit_code;
}

}  // namespace dial9::cli
