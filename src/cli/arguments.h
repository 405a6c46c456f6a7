// What the verbs take on the command line: a small face over CLI11. Its header alone takes longer
// to compile than all verbs, so that arguments.cc is the only file that includes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dial9::cli {

// A check of what was given: the error text, or empty.
using ArgumentCheck = std::function<std::string(const std::string&)>;

// An option of a verb, while it is declared.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}
  Argument& required();
  Argument& with_default_shown();  // what the variable holds now
  Argument& once_each();           // of a list: one value for each time that the name is given
  Argument& taking(int values);    // of a list: so many values follow the name
  Argument& in_range(std::uint64_t first, std::uint64_t last);  // both are taken
  Argument& noted_in(bool& is_given);  // true where the user gives it, whatever the value
  Argument& positive();
  Argument& one_of(const std::vector<std::string>& choices);
  Argument& check(const ArgumentCheck& check);

 private:
  CLI::Option* option_;
};

// The most that a --limit takes.
inline constexpr std::uint64_t kMostRows = 1'000'000'000;

// The options and the run of one verb. `into` outlives Arguments::parse(). Names: "PATH" by
// position, "--limit", "-o,--output"; of a flag also "!--no-trace", which makes it false.
class Verb {
 public:
  // What must hold before a verb runs, though the command line is right; else kUnreadable.
  using Precondition = std::function<Result<void>()>;
  using Preconditions = std::shared_ptr<std::vector<Precondition>>;
  Verb(CLI::App* app, Preconditions preconditions)
      : app_(app), preconditions_(std::move(preconditions)) {}
  // Number is std::uint16_t, std::uint32_t or std::uint64_t; what is none, or beyond it, is
  // refused.
  template <class Number>
  Argument number(const std::string& name, Number& into, const std::string& what);
  Argument text(const std::string& name, std::string& into, const std::string& what);
  Argument texts(const std::string& name, std::vector<std::string>& into, const std::string& what);
  // As text() and texts(), of files and folders: an empty name, as an unset variable of a shell
  // gives it, is refused.
  Argument path(const std::string& name, std::string& into, const std::string& what);
  Argument paths(const std::string& name, std::vector<std::string>& into, const std::string& what);
  // Folders that must be there.
  Argument folders(const std::string& name, std::vector<std::string>& into,
                   const std::string& what);
  // A time such as "20ms"; see durations.h.
  Argument duration(const std::string& name, std::string& into, const std::string& what);
  void flag(const std::string& name, bool& into, const std::string& what);

 private:
  CLI::App* app_;
  Preconditions preconditions_;
};

// The command line of the program.
class Arguments {
 public:
  Arguments(const std::string& description, const std::string& version, const std::string& footer);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // A verb whose `run(options)` returns its exit code. `declare(verb, options)` is called at once.
  template <class Options, class Declare, class Run>
  void add(const std::string& name, const std::string& what, Declare declare, Run run) {
    const auto options = std::make_shared<Options>();
    Verb verb = add_verb(name, what, [options, run] { return run(*options); });
    declare(verb, *options);
  }
  // Runs the verb that was asked for; its exit code. Help, the version and what is wrong with the
  // command line are printed here.
  int parse(int argc, char** argv);

 private:
  Verb add_verb(const std::string& name, const std::string& what, std::function<int()> run);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dial9::cli
