// The public handle: every call goes to the core, and no exception comes out.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/recorder.h"

#include <exception>

#include "base/plural.h"
#include "recorder/recorder_core.h"

namespace dial9 {

Recorder::Recorder() noexcept = default;
Recorder::Recorder(std::shared_ptr<internal::RecorderCore> core) noexcept
    : core_(std::move(core)) {}
Recorder::Recorder(Recorder&&) noexcept = default;

Recorder& Recorder::operator=(Recorder&& other) noexcept {
  if (this != &other) {
    stop();
    core_ = std::move(other.core_);
  }
  return *this;
}

Recorder::~Recorder() { stop(); }

std::pair<Recorder, Status> Recorder::start(const RecorderOptions& options) noexcept {
  try {
    Status status;
    auto core = internal::RecorderCore::start(options, {}, &status);
    return {Recorder(std::move(core)), std::move(status)};
  } catch (const std::exception&) {
    return {Recorder(), Status::failure("out of memory")};
  }
}

Status Recorder::restart_in_child() noexcept {
  try {
    if (core_ == nullptr) return Status::failure("not started");
    if (core_->is_ours()) {
      return Status::failure("this is the process that started the recorder, not a child of it");
    }
    auto [recorder, status] = start(core_->options());
    if (status) core_ = std::move(recorder.core_);
    return status;
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

bool Recorder::is_running() const noexcept { return core_ != nullptr && core_->is_running(); }

void Recorder::enable() noexcept {
  if (core_ != nullptr) core_->enable();
}

void Recorder::disable() noexcept {
  if (core_ != nullptr) core_->disable();
}

RecorderStatus Recorder::status() const noexcept {
  RecorderStatus status;
  try {
    if (core_ != nullptr) return core_->status();
    status.reason = "not started";
  } catch (const std::exception&) {
    status = {};
    status.reason = "out of memory";
  }
  return status;
}

void Recorder::set_metadata(const std::string& key, const std::string& value) noexcept {
  try {
    if (core_ != nullptr) core_->set_metadata(key, value);
  } catch (const std::exception&) {
    return;  // out of memory: the entry is missing, the host goes on
  }
}

bool Recorder::rotate(std::chrono::nanoseconds deadline) noexcept {
  return core_ != nullptr && core_->rotate(deadline);
}

StopResult Recorder::stop(std::chrono::nanoseconds deadline) noexcept {
  if (core_ == nullptr) return {};
  const std::shared_ptr<internal::RecorderCore> core = std::move(core_);
  try {
    return core->stop(deadline);
  } catch (const std::exception&) {
    StopResult result;
    result.is_complete = false;
    return result;
  }
}

std::vector<SegmentBytes> Recorder::sealed_segments() const noexcept {
  try {
    if (core_ != nullptr) return core_->sealed_segments();
  } catch (const std::exception&) {
    return {};
  }
  return {};
}

Status Recorder::dump(const std::string& path) const noexcept {
  try {
    if (core_ != nullptr) return core_->dump(path);
    return Status::failure("not started");
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

std::string StopResult::report() const {
  std::string text = "recorded " + plural(events_written, "event") + ", dropped " +
                     std::to_string(events_dropped) + "\n";
  if (!is_complete) text += "incomplete: " + unfinished + "\n";
  for (const SourceStatus& source : sources) {
    if (source.reason.empty()) continue;
    text += source.name + ": " + plural(source.events, "event") + ": " + source.reason + "\n";
  }
  return text;
}

}  // namespace dial9
