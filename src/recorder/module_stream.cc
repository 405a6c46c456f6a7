// See module_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/module_stream.h"

#include "format/encoder.h"

namespace dial9::internal {

SourceStream encode_modules(std::span<const ModuleRecord> modules, const ModuleSetTimes& times) {
  using format::FieldType;
  constexpr std::uint16_t kModule = 1;
  if (modules.empty()) return {};
  format::Encoder out;
  out.schema(kModule, "ModuleEvent", true,
             {{"path", FieldType::kString},
              {"build_id", FieldType::kString},
              {"begin", FieldType::kVarint},
              {"end", FieldType::kVarint},
              {"bias", FieldType::kVarint},
              {"epoch", FieldType::kVarint},
              {"since_ns", FieldType::kVarint},
              {"before_held_ns", FieldType::kVarint},
              {"only_added", FieldType::kBool},
              {"modules", FieldType::kVarint}});
  out.annotations(kModule, {{6, "unit", "ns"}, {7, "unit", "ns"}});
  for (const ModuleRecord& module : modules) {
    out.begin(kModule, times.at_ns);
    out.string(module.path);
    out.string(module.build_id);
    for (const std::uint64_t value : {module.begin, module.end, module.bias, times.epoch,
                                      times.since_ns, times.before_held_ns}) {
      out.varint(value);
    }
    out.boolean(times.only_added);
    out.varint(modules.size());
  }
  return {out.take(), {modules.size(), times.at_ns, times.at_ns}};
}

}  // namespace dial9::internal
