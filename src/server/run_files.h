// The runs under a directory of the file system (or one trace file). Strongest property: nothing
// outside the directory is ever read: ids are looked up in the list and never joined to a path, and
// what a symbolic link leads out of the directory is left out.
// Spec: docs/spec/http_api.md, "Runs".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/run_source.h"

namespace dial9::server {

// Errors: kNotFound (also for what is neither a directory nor a regular file), kPermission.
Result<std::unique_ptr<RunSource>> runs_in(const std::string& path);

}  // namespace dial9::server
