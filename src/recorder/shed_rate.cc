// See shed_rate.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/shed_rate.h"

namespace dial9::internal {

std::vector<ShedRate> rates_of(const ShedChange& change) {
  std::vector<ShedRate> rates;
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    if (change.keep[c] <= 1 && change.before[c] <= 1 && change.passed.shed[c] == 0) continue;
    rates.push_back({change.at_ns, change.since_ns, c, change.keep[c], change.passed.kept[c],
                     change.passed.shed[c]});
  }
  return rates;
}

std::vector<ShedRate> rates_of(const ShedRaises& raises) {
  std::vector<ShedRate> rates;
  KeepOneIn before = kKeepAll;
  std::uint64_t since_ns = raises.since_ns;
  ShedCounts counts = raises.since_counts;
  for (std::uint32_t i = 0; i < raises.count; ++i) {
    const ShedRaise& raise = raises.list[i];
    const bool is_first = since_ns == 0;  // nothing was shed before
    const std::vector<ShedRate> some =
        rates_of({raise.at_ns, is_first ? raise.at_ns : since_ns, raise.keep_one_in, before,
                  is_first ? ShedCounts{} : raise.counts.since(counts)});
    rates.insert(rates.end(), some.begin(), some.end());
    before = raise.keep_one_in;
    since_ns = raise.at_ns;
    counts = raise.counts;
  }
  return rates;
}

void put_rates(format::Encoder& out, std::uint16_t type, std::span<const ShedRate> rates) {
  using format::FieldType;
  if (rates.empty()) return;
  out.schema(type, "RecorderShedEvent", true,
             {{"class", FieldType::kPooledString},
              {"keep_one_in", FieldType::kF64},
              {"since_ns", FieldType::kVarint},
              {"kept", FieldType::kVarint},
              {"shed", FieldType::kVarint}});
  out.annotations(type, {{2, "unit", "ns"}});
  for (const ShedRate& rate : rates) {
    out.begin(type, rate.at_ns);
    out.pooled_string(shed_class_name(rate.shed_class));
    out.f64(rate.keep_one_in);
    out.varint(rate.since_ns);
    out.varint(rate.kept);
    out.varint(rate.shed);
  }
}

}  // namespace dial9::internal
