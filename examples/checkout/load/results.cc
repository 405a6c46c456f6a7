// Text and JSON reports of a load run.
// SPDX-License-Identifier: Apache-2.0
#include "results.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

namespace checkout::load {
namespace {

struct Quantile {
  const char* name;
  double value;
};
constexpr std::array<Quantile, 4> kQuantiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}};

std::string milliseconds(std::uint64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f ms", static_cast<double>(ns) / 1e6);
  return text.data();
}

double achieved_hz(const Results& results) {
  return results.duration_s > 0 ? static_cast<double>(results.answered()) / results.duration_s : 0;
}

}  // namespace

std::uint64_t Results::answered() const {
  return std::accumulate(by_class.begin(), by_class.end(), std::uint64_t{0});
}

bool Results::is_clean() const {
  return timeouts + closed + bad_responses + unsent + by_class[5] == 0 && answered() == intended;
}

std::string to_text(const Results& results) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(),
                "requests: %llu intended, %llu answered (2xx %llu, 4xx %llu, 5xx %llu)\n"
                "failed:   %llu timed out, %llu closed, %llu not HTTP, %llu unsent\n"
                "rate:     %.1f/s asked for, %.1f/s answered, on %zu connections\n",
                static_cast<unsigned long long>(results.intended),
                static_cast<unsigned long long>(results.answered()),
                static_cast<unsigned long long>(results.by_class[2]),
                static_cast<unsigned long long>(results.by_class[4]),
                static_cast<unsigned long long>(results.by_class[5]),
                static_cast<unsigned long long>(results.timeouts),
                static_cast<unsigned long long>(results.closed),
                static_cast<unsigned long long>(results.bad_responses),
                static_cast<unsigned long long>(results.unsent), results.rate_hz,
                achieved_hz(results), results.connections);
  std::string out = text.data();
  out += "latency, from the intended send time:\n         ";
  for (const Quantile& quantile : kQuantiles) {
    out += std::string(" ") + quantile.name + ' ' +
           milliseconds(results.latency_ns.quantile(quantile.value)) + ',';
  }
  return out + " max " + milliseconds(results.latency_ns.max()) + '\n';
}

std::string to_json(const Results& results) {
  nlohmann::ordered_json latency;
  for (const Quantile& quantile : kQuantiles) {
    latency[quantile.name] = results.latency_ns.quantile(quantile.value);
  }
  latency["max"] = results.latency_ns.max();
  latency["mean"] = results.latency_ns.mean();
  const nlohmann::ordered_json json{{"intended", results.intended},
                                    {"answered", results.answered()},
                                    {"status",
                                     {{"2xx", results.by_class[2]},
                                      {"3xx", results.by_class[3]},
                                      {"4xx", results.by_class[4]},
                                      {"5xx", results.by_class[5]}}},
                                    {"errors",
                                     {{"timeout", results.timeouts},
                                      {"closed", results.closed},
                                      {"bad_response", results.bad_responses},
                                      {"unsent", results.unsent}}},
                                    {"failed_connects", results.failed_connects},
                                    {"body_bytes", results.body_bytes},
                                    {"connections", results.connections},
                                    {"rate_hz", results.rate_hz},
                                    {"achieved_hz", achieved_hz(results)},
                                    {"duration_s", results.duration_s},
                                    {"latency_ns", latency}};
  return json.dump() + '\n';
}

}  // namespace checkout::load
