// `dial9 serve`: the page and the HTTP API over the runs of a directory. The one entry to this
// folder.
// Strongest property: with the defaults nobody but this machine's users can ask it anything.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "analysis/stack_names.h"
#include "base/result.h"

namespace dial9::server {

struct ServeOptions {
  std::string path;                   // a directory of runs, a run, or a trace file
  std::string base_path;              // likewise, of which the newest run is compared with; or none
  std::string address = "127.0.0.1";  // an IP address to listen on
  std::uint16_t port = 9090;          // 0: the system picks one
  std::string token;                  // asked for where not empty; made up where it is empty and
                                      // the address isn't loopback
  std::size_t memory_bytes = std::size_t{2} << 30;  // of loaded runs
  unsigned threads = 2;                             // that answer requests
  analysis::FrameNamer* namer = nullptr;  // of frames; outlives serve(); one call at a time
  bool stops_on_signals = true;           // SIGINT and SIGTERM end serve()
};

// What a user needs to open the page.
struct Serving {
  std::uint16_t port = 0;
  std::string url;  // with the token in its fragment, where there is one
};

// Serves until a signal (see above). `ready` is called once, from this thread, when requests are
// accepted; `stop_when` (may be empty) is then handed a function that ends serve() from any thread.
// Errors: what is wrong with the path, the address or the port; the message names the cure.
Result<void> serve(const ServeOptions& options, const std::function<void(const Serving&)>& ready,
                   const std::function<void(std::function<void()>)>& stop_when = {});

}  // namespace dial9::server
