// See stack_names.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/stack_names.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "analysis/human.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kMostInlined = 64;

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

// On the machines that traces come from (x86-64, AArch64).
bool is_kernel_address(std::uint64_t address) {
  return address >= std::uint64_t{0xffff'0000'0000'0000};
}

std::string_view boot_of(const Trace& trace) {
  std::string_view boot;
  for (const MetadataEntry& entry : trace.metadata) {
    if (entry.key == "kernel.boot_id" && entry.value != boot) {
      if (!boot.empty()) {
        return {};
      }
      boot = entry.value;
    }
  }
  return boot;
}

// A name alone, as who records finds it in a symbol table; files may know more.
bool is_bare(const std::vector<symbolize::Frame>& frames) {
  return std::none_of(frames.begin(), frames.end(), [](const symbolize::Frame& frame) {
    return frame.is_inlined || frame.line != 0 || frame.at_line != 0;
  });
}

// What the trace itself says, as far as it is known to be of this place.
std::vector<symbolize::Frame> own_frames(const Trace& trace, const OwnSymbols& own) {
  std::vector<symbolize::Frame> frames;
  for (const Symbol& symbol : own.symbols) {
    if (own.is_behind_call && symbol.inline_depth != 0) {
      continue;
    }
    if (symbol.name != kNoName) {
      symbolize::Frame& frame = frames.emplace_back();
      frame.name = trace.names.text(symbol.name);
      if (symbol.line != 0 && (symbol.size != 0 || !own.is_behind_call)) {
        // Of a range, the line is the function's; of an address alone, what runs there.
        (symbol.size != 0 ? frame.file : frame.at_file) = trace.names.text(symbol.file);
        (symbol.size != 0 ? frame.line : frame.at_line) = symbol.line;
      }
      frame.is_inlined = symbol.inline_depth != 0;
    }
  }
  return frames;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::vector<symbolize::Frame> frames_of(const Trace& trace, FrameNamer* namer, NameId run,
                                        std::uint64_t at_ns, std::uint64_t address,
                                        bool is_return) {
  const std::uint64_t code = is_return && address != 0 ? address - 1 : address;
  if (namer == nullptr) {
    return {};
  }
  const std::optional<Module> module = trace.modules.at(run, at_ns, code);
  if (!module) {
    return is_kernel_address(code) ? namer->kernel_frames(boot_of(trace), address, is_return)
                                   : std::vector<symbolize::Frame>();
  }
  return namer->frames(trace.names.text(module->path), trace.names.text(module->build_id),
                       address - module->bias, is_return);
}

// Behind a call that doesn't return another function may begin. But some writers name each address
// that they met, also those behind a call.
OwnSymbols own_symbols(const Trace& trace, NameId run, std::uint64_t address, bool is_return,
                       std::size_t most) {
  if (!is_return || address == 0) {
    return {trace.symbols.at(run, address, most), false};
  }
  OwnSymbols own{trace.symbols.at(run, address - 1, most), false};
  if (own.symbols.empty()) {
    own.symbols = trace.symbols.at(run, address, most);
    if (!own.symbols.empty() && own.symbols.front().addr != address) {
      own.symbols.clear();
    }
    own.is_behind_call = !own.symbols.empty();
  }
  return own;
}

bool has_symbols_behind_calls(const Trace& trace, std::uint32_t stack, Leaf leaf) {
  if (stack == kNoIndex) {
    return false;
  }
  const Range range = trace.stacks.ranges[stack];
  for (std::uint32_t i = range.first + (leaf == Leaf::kReturn ? 0 : 1); i < range.last; ++i) {
    const OwnSymbols own =
        own_symbols(trace, trace.stacks.runs[stack], trace.stacks.frames[i], true, 1);
    if (own.is_behind_call &&
        (own.symbols.front().inline_depth != 0 || own.symbols.front().line != 0)) {
      return true;
    }
  }
  return false;
}

std::size_t StackNames::Hash::operator()(const Place& place) const {
  std::uint64_t hash = place.address * 0xff51afd7ed558ccdU;
  hash ^= (std::uint64_t{place.run} << 33) ^ (std::uint64_t{place.stretch} << 1) ^
          (place.is_return ? 1U : 0U);
  hash *= 0xc4ceb9fe1a85ec53U;
  return hash ^ (hash >> 31);
}

// Tells the namer once of each module which addresses the trace has in it: asked one by one, a
// namer may have to go far for each.
void StackNames::expect(const Module& module, NameId run) {
  const std::pair one(run, module);
  if (std::find(expected_.begin(), expected_.end(), one) != expected_.end()) {
    return;
  }
  expected_.push_back(one);
  const auto [at, is_new] = code_of_run_.try_emplace(run);
  std::vector<std::uint64_t>& code = at->second;
  for (std::size_t stack = 0; is_new && stack < trace_.stacks.ranges.size(); ++stack) {
    const Range range = trace_.stacks.ranges[stack];
    for (std::uint32_t i = range.first; trace_.stacks.runs[stack] == run && i < range.last; ++i) {
      const bool is_return = i != range.first || leaf_ == Leaf::kReturn;
      const std::uint64_t address = trace_.stacks.frames[i];
      code.push_back(is_return && address != 0 ? address - 1 : address);
    }
  }
  if (is_new) {
    std::sort(code.begin(), code.end());
    code.erase(std::unique(code.begin(), code.end()), code.end());
  }
  std::vector<std::uint64_t> in_file;
  for (auto next = std::lower_bound(code.begin(), code.end(), module.begin);
       next != code.end() && *next < module.end; ++next) {
    in_file.push_back(*next - module.bias);
  }
  namer_->expect(trace_.names.text(module.path), trace_.names.text(module.build_id), in_file);
}

FrameId StackNames::frame(const symbolize::Frame& found, std::string_view module) {
  const FrameId id = by_ == FrameBy::kLine
                         ? tree_.frame(found.name, module, found.at_file, found.at_line)
                         : tree_.frame(found.name, module, found.file, found.line);
  return found.is_inlined ? id | kInlinedFrame : id;
}

std::vector<FrameId> StackNames::make_frames(const Place& place, std::uint64_t at_ns) {
  std::vector<FrameId> frames;
  // A call may be its function's last instruction: what it returns to is the next function's.
  const std::uint64_t code =
      place.is_return && place.address != 0 ? place.address - 1 : place.address;
  const std::optional<Module> module = trace_.modules.at(place.run, at_ns, code);
  const bool is_kernel = !module && is_kernel_address(code);
  const std::string_view path = module ? trace_.names.text(module->path) : "";
  const std::string_view file = is_kernel ? kKernelModule : file_name(path);
  const OwnSymbols own =
      own_symbols(trace_, place.run, place.address, place.is_return, kMostInlined);
  std::vector<symbolize::Frame> found = own_frames(trace_, own);
  bool is_without_inlined = own.is_behind_call && own.symbols.front().inline_depth != 0;
  if (is_bare(found)) {
    if (module && namer_ != nullptr) {
      expect(*module, place.run);
    }
    std::vector<symbolize::Frame> by_file =
        frames_of(trace_, namer_, place.run, at_ns, place.address, place.is_return);
    if (!by_file.empty()) {
      found = std::move(by_file);
      is_without_inlined = false;
    }
  }
  without_inlined_ += is_without_inlined ? 1 : 0;
  for (const symbolize::Frame& one : found) {
    frames.push_back(frame(one, file));
  }
  if (frames.empty() && !module && !is_kernel) {
    frames.push_back(tree_.frame(hex(place.address)));
    return frames;
  }
  if (frames.empty() && is_kernel) {
    frames.push_back(tree_.frame(hex(place.address), file));
  } else if (frames.empty()) {
    const std::string name = file.empty() ? "[unnamed]" : std::string(file);
    frames.push_back(tree_.frame(name + "+" + hex(code - module->bias), file));
  }
  return frames;
}

void StackNames::add_notes(FlameHeading& heading) const {
  if (without_inlined_ != 0) {
    heading.notes.push_back(
        "what is inlined into " + counted(without_inlined_, "caller") +
        " isn't known: the trace names the code that each call returns to, where other functions "
        "may be inlined");
  }
}

const std::vector<FrameId>& StackNames::frames_at(const Place& place, std::uint64_t at_ns) {
  const auto [at, is_new] = known_.try_emplace(place);
  if (is_new) {
    at->second = make_frames(place, at_ns);
  }
  return at->second;
}

std::span<const FrameId> StackNames::frames(std::uint32_t stack, std::uint64_t at_ns, Leaf leaf) {
  frames_.clear();
  leaf_ = leaf;
  if (stack == kNoIndex) {
    return frames_;
  }
  const Range range = trace_.stacks.ranges[stack];
  Place place;
  place.run = trace_.stacks.runs[stack];
  place.stretch = trace_.modules.stretch(place.run, at_ns);
  place.is_return = leaf == Leaf::kReturn;
  for (std::uint32_t i = range.first; i < range.last; ++i) {
    place.address = trace_.stacks.frames[i];
    const std::vector<FrameId>& at = frames_at(place, at_ns);
    frames_.insert(frames_.end(), at.begin(), at.end());
    place.is_return = true;
  }
  return frames_;
}

}  // namespace dial9::analysis
