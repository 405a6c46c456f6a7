// The served runs, and beside them one of elsewhere that they are compared with. Strongest
// property: its id is no served run's, now or later. Spec: docs/spec/http_api.md, "Runs".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/run_source.h"

namespace dial9::server {

// What the id of the run to compare with begins with.
inline constexpr std::string_view kBasePrefix = "base:";

// All of `served`, then the newest of `base`, marked (RunInfo::is_base); while `base` can't be
// listed, without it. Errors: those of `served`; that there is nothing in `base` now.
Result<std::unique_ptr<RunSource>> with_base(std::unique_ptr<RunSource> served,
                                             std::unique_ptr<RunSource> base);

}  // namespace dial9::server
