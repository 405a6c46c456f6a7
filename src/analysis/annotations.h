// A schema's annotations by field: Schema::annotation() looks through all of them, which for every
// field of a hostile schema (65,535 fields, as many annotations) would take minutes.
// Internal to analysis/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/stable_sort.h"
#include "format/decoder.h"

namespace dial9::analysis {

// Keeps pointers into `schema`, which outlives this unchanged.
class AnnotationsByField {
 public:
  explicit AnnotationsByField(const format::Schema& schema) {
    for (const format::Annotation& annotation : schema.annotations) {
      sorted_.push_back(&annotation);
    }
    dial9::stable_sort(sorted_.begin(), sorted_.end(),
                       [](const format::Annotation* a, const format::Annotation* b) {
                         return a->field_index < b->field_index;
                       });
  }

  // As Schema::annotation().
  std::optional<std::string_view> find(std::size_t field_index, std::string_view key) const {
    auto at = std::lower_bound(sorted_.begin(), sorted_.end(), field_index,
                               [](const format::Annotation* annotation, std::size_t wanted) {
                                 return annotation->field_index < wanted;
                               });
    for (; at != sorted_.end() && (*at)->field_index == field_index; ++at) {
      if ((*at)->key == key) {
        return (*at)->value;
      }
    }
    return std::nullopt;
  }

  // Of a field's `unit`, in today's or the older key.
  std::optional<std::string_view> unit(std::size_t field_index) const {
    const auto unit = find(field_index, "unit");
    return unit ? unit : find(field_index, "metrique.unit");
  }

 private:
  std::vector<const format::Annotation*> sorted_;
};

}  // namespace dial9::analysis
