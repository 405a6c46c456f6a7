// What the written forms of flame trees share. Strongest property: whatever a name holds, a line
// stays a line and a member of JSON a member. See flame.h, flame_diff.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/flame.h"

namespace dial9::analysis {

// "name  [module]"; `by_line`: as flame_name() has it.
std::string function_text(const FlameTree& tree, FrameId frame, bool by_line);

// --- folded stacks

// Calls use("root;...;leaf", node) for each node, parents before children; "" of the root.
void for_each_path(const FlameTree& tree, bool by_line,
                   const std::function<void(const std::string& path, std::uint32_t node)>& use);
// A line "path;tail numbers". False: no room is left, nothing was written.
bool append_folded(std::string& out, const std::string& path, std::string_view tail,
                   const std::string& numbers);

// --- JSON

void append_json_strings(std::string& out, const std::vector<std::string>& texts);
// From the object's brace on: title, counts, unit, inverted, uncertain, notes.
std::string json_heading(const FlameHeading& heading, FlameUnit unit, bool is_inverted);

// Which functions are written.
struct ShownFunctions {
  std::vector<std::size_t> order;                   // positions in what was given
  std::unordered_map<FrameId, std::size_t> number;  // where in `order` it is
  std::size_t left_out = 0;
};
// The first `most` of `functions`, and those of the rows in any case.
ShownFunctions shown_functions(const FlameTree& tree, const std::vector<FlameRow>& rows,
                               const std::vector<FrameId>& functions, std::uint32_t most);
// "{"name": ..., "module": ...", and the place where it is known, without the closing brace.
void append_function(std::string& out, const FlameTree& tree, FrameId frame);
// "{"function": ..., "parent": ..., "start": ...", without the closing brace.
void append_place(std::string& out, const FlameTree& tree, const std::vector<FlameRow>& rows,
                  std::size_t row, const ShownFunctions& shown);

}  // namespace dial9::analysis
