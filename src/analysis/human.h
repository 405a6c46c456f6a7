// Numbers as a person reads them in reports: "20.1 ms", "1,234,567", "12.5 %". No locale.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dial9::analysis {

std::string human_duration(std::uint64_t ns);  // three significant digits; kUnknownNs: "unknown"
std::string human_count(std::uint64_t count);  // thousands separated by commas
// "1 event", "7 events".
std::string counted(std::uint64_t count, std::string_view noun);
// Lost events: "7 events"; "unknown, at least 7 events" where more are lost than were counted.
std::string lost_text(std::uint64_t counted_events, bool has_unknown);
// The same with a verb that agrees: counted(7, "event", "was", "were") is "7 events were".
std::string counted(std::uint64_t count, std::string_view noun, std::string_view one,
                    std::string_view many);
// "in this trace"; of one that wasn't read to its end "in what was read of this trace".
std::string in_what_was_read(bool is_truncated);
// "1 more is", "7 more are".
std::string more_are(std::uint64_t count);
std::string human_share(double share);         // 0 to 1, as per cent
std::string human_bytes(std::uint64_t bytes);  // binary units
// At least one blank before it; `width` counts letters, not bytes: "µs" is two of them.
std::string right_aligned(std::string_view text, std::size_t width);

// "2026-06-22T16:36:15.256522678Z" of nanoseconds since 1970 (UTC, no leap seconds).
std::string iso_time(std::uint64_t realtime_ns);

}  // namespace dial9::analysis
