// See base_runs.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/base_runs.h"

#include <algorithm>
#include <utility>

namespace dial9::server {
namespace {

// A served run's id that looks like the base's gets one more '~' in front.
bool looks_like_base(std::string_view id) {
  id.remove_prefix(std::min(id.find_first_not_of('~'), id.size()));
  return id.starts_with(kBasePrefix);
}

class WithBase final : public RunSource {
 public:
  WithBase(std::unique_ptr<RunSource> served, std::unique_ptr<RunSource> base)
      : served_(std::move(served)), base_(std::move(base)) {}

  std::string root() const override { return served_->root(); }

  Result<std::vector<RunInfo>> list() override {
    auto runs = served_->list();
    if (!runs) return runs;
    for (RunInfo& run : *runs) {
      if (looks_like_base(run.id)) run.id.insert(0, "~");
    }
    const auto others = base_->list();
    if (!others || others->empty()) return runs;
    RunInfo newest = others->front();
    newest.id.insert(0, kBasePrefix);
    newest.is_base = true;
    runs->push_back(std::move(newest));
    return runs;
  }

  Result<void> read(const RunInfo& run, std::size_t file,
                    const std::function<bool(std::span<const std::uint8_t>)>& take) override {
    RunInfo own = run;  // as its source calls it
    if (run.is_base) {
      own.id.erase(0, kBasePrefix.size());
      own.is_base = false;
      return base_->read(own, file, take);
    }
    if (looks_like_base(run.id)) own.id.erase(0, 1);
    return served_->read(own, file, take);
  }

 private:
  const std::unique_ptr<RunSource> served_;
  const std::unique_ptr<RunSource> base_;
};

}  // namespace

Result<std::unique_ptr<RunSource>> with_base(std::unique_ptr<RunSource> served,
                                             std::unique_ptr<RunSource> base) {
  const auto runs = base->list();
  if (!runs) return std::unexpected(runs.error());
  if (runs->empty()) {
    return make_error(ErrorCode::kNotFound, "no trace to compare with in '" + base->root() + "'");
  }
  return std::make_unique<WithBase>(std::move(served), std::move(base));
}

}  // namespace dial9::server
