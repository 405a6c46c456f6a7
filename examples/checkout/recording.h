// The service's recorder: started from the command line, or from the DIAL9_ variables if that says
// nothing. The service serves the same whether it runs, fails to start, or is off.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dial9/recorder.h>

#include <string>

#include "options.h"

namespace checkout {

class Recording {
 public:
  // Starts recording as `options` say. If that was asked for and fails, the reason goes to stderr
  // and the service runs without.
  explicit Recording(const Options& options);

  // Memory ring: writes what it holds to the file `path`. False (with the reason on stderr) if
  // nothing is recorded or the file can't be written.
  bool dump(const std::string& path);

  // Seals what is left; says on stderr what was lost, if anything was.
  void stop();

 private:
  dial9::Recorder recorder_;
};

}  // namespace checkout
