// SPDX-License-Identifier: Apache-2.0
#include "analysis/census.h"

#include <algorithm>
#include <iterator>

#include "analysis/counts.h"
#include "analysis/fields.h"
#include "analysis/shed_rate.h"
#include "format/value.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kMaxKept = 4'096;

std::uint64_t number(const format::Event& event, int field, std::uint64_t missing) {
  return field < 0 ? missing : number_of(event.values[static_cast<std::size_t>(field)], missing);
}

bool is_worker_event(std::string_view name) {
  return name == "PollStartEvent" || name == "PollEndEvent" || name == "WorkerParkEvent" ||
         name == "WorkerUnparkEvent";
}

}  // namespace

class Census::Visitor final : public format::Visitor {
 public:
  explicit Visitor(Census& census) : census_(census) {}
  void on_stream_start(std::uint64_t /*offset*/) override { census_.on_stream_start(); }
  void on_schema(const format::Schema& schema) override { census_.on_schema(schema); }
  bool on_event(const format::Event& event) override {
    census_.on_event(event);
    return true;
  }

 private:
  Census& census_;
};

Census::Census() : visitor_(std::make_unique<Visitor>(*this)) {}
Census::~Census() = default;

void Census::begin_input(const format::Decoder& decoder) {
  decoder_ = &decoder;
  plans_.clear();
  run_.clear();
  ++inputs_;
  is_told_ = false;
}

void Census::take_told() {
  told_inputs_ += is_told_ ? 0 : 1;
  is_told_ = true;
}

void Census::on_stream_start() {
  ++streams_;
  last_of_worker_.clear();
}

void Census::on_schema(const format::Schema& schema) {
  if (schema.index >= plans_.size()) {
    plans_.resize(schema.index + 1);
  }
  Plan plan;
  plan.count = &by_type_[schema.name];
  if (is_worker_event(schema.name)) {
    plan.kind = Kind::kWorker;
    plan.fields[0] = schema.find("worker_id");
  } else if (schema.name == "ClockSyncEvent") {
    plan.kind = Kind::kClockSync;
    plan.fields[0] = schema.find("realtime_ns");
  } else if (schema.name == "SegmentMetadataEvent") {
    plan.kind = Kind::kMetadata;
    plan.fields[0] = schema.find("entries");
  } else if (schema.name == "RecorderLossEvent") {
    plan.kind = Kind::kLoss;
    plan.fields[0] = schema.find("cause");
    plan.fields[1] = schema.find("count");
    plan.fields[2] = schema.find("first_ns");
    plan.fields[3] = schema.find("last_ns");
  } else if (schema.name == "RecorderShedEvent") {
    plan.kind = Kind::kShed;
    plan.fields[0] = schema.find("class");
    plan.fields[1] = schema.find("keep_one_in");
    plan.fields[2] = schema.find("shed");
  } else if (schema.name == "RecorderBillEvent") {
    plan.kind = Kind::kBill;
    plan.fields[0] = schema.find("elapsed_ns");
    plan.fields[1] = schema.find("collector_cpu_ns");
    plan.fields[2] = schema.find("host_cpu_ns");
    plan.fields[3] = schema.find("bytes");
  } else if (schema.name == "HeapProfileEvent") {
    plan.kind = Kind::kHeapProfile;
    plan.fields[0] = schema.find("sample_rate_bytes");
    plan.fields[1] = schema.find("largest_rate_bytes");
  } else if (schema.name == "ModuleEvent") {
    plan.kind = Kind::kModule;
  } else if (schema.name == "LabelChangeEvent") {
    plan.kind = Kind::kLabelChange;
  } else if (schema.name == "LabelCoverageEvent") {
    plan.kind = Kind::kLabelCoverage;
  }
  plans_[schema.index] = plan;
}

void Census::on_event(const format::Event& event) {
  const Plan& plan = plans_[event.schema.index];
  const std::uint64_t at_ns = event.timestamp_ns;
  ++events_;
  ++*plan.count;
  if (at_ns != 0) {
    begin_ns_ = begin_ns_ == 0 ? at_ns : std::min(begin_ns_, at_ns);
    end_ns_ = std::max(end_ns_, at_ns);
  }
  own_events_ += is_own(plan.kind) ? 1 : 0;
  switch (plan.kind) {
    case Kind::kOther:
      break;
    case Kind::kWorker:
      on_worker(event, plan);
      break;
    case Kind::kClockSync:
      if (anchors_.size() < kMaxKept) {
        anchors_.push_back({at_ns, number(event, plan.fields[0], 0)});
      }
      break;
    case Kind::kMetadata:
      on_metadata(event, plan);
      break;
    case Kind::kLoss:
      on_loss(event, plan);
      break;
    case Kind::kShed:
      on_shed(event, plan);
      break;
    case Kind::kBill:
      on_bill(event, plan);
      break;
    case Kind::kHeapProfile:
      on_heap_profile(event, plan);
      break;
    case Kind::kModule:
      break;
    case Kind::kLabelChange:
      on_label_change(at_ns);
      break;
    case Kind::kLabelCoverage:
      on_label_coverage(at_ns);
      break;
  }
}

bool Census::is_own(Kind kind) {
  switch (kind) {
    case Kind::kClockSync:
    case Kind::kMetadata:
    case Kind::kLoss:
    case Kind::kShed:
    case Kind::kBill:
    case Kind::kModule:
    case Kind::kLabelCoverage:
      return true;
    case Kind::kOther:
    case Kind::kWorker:
    case Kind::kHeapProfile:
    case Kind::kLabelChange:
      break;
  }
  return false;
}

void Census::on_label_change(std::uint64_t at_ns) {
  if (at_ns != label_stamp_ns_) {
    label_changes_ = 0;
  }
  label_stamp_ns_ = at_ns;
  ++label_changes_;
}

// A list of the recorder's: changes with its stamp, and then this.
void Census::on_label_coverage(std::uint64_t at_ns) {
  own_events_ += at_ns == label_stamp_ns_ ? label_changes_ : 0;
  label_changes_ = 0;
}

void Census::on_worker(const format::Event& event, const Plan& plan) {
  const std::uint64_t worker = number(event, plan.fields[0], kUnknownWorker);
  if (worker == kUnknownWorker || worker == kBlockingWorker) {
    return;  // several threads share the id
  }
  constexpr std::size_t kMaxWorkers = 1 << 16;
  if (last_of_worker_.size() >= kMaxWorkers && !last_of_worker_.contains(worker)) {
    return;
  }
  std::uint64_t& last_ns = last_of_worker_[worker];
  inversions_ += event.timestamp_ns < last_ns ? 1U : 0U;
  last_ns = event.timestamp_ns;
}

void Census::on_metadata(const format::Event& event, const Plan& plan) {
  if (plan.fields[0] < 0) {
    return;
  }
  const format::Value& entries = event.values[static_cast<std::size_t>(plan.fields[0])];
  for (format::ElementCursor cursor(entries); cursor.next();) {
    std::string key(cursor.key().text());
    if (is_writer_that_tells_loss(key, cursor.value().text())) {
      take_told();
    } else if (key == "boot_id") {
      run_ = std::string(cursor.value().text());
    } else if (key == "segment.index") {
      gaps_.add(run_, cursor.value().text(), event.timestamp_ns);
    }
    if (metadata_.size() < kMaxKept || metadata_.contains(key)) {
      metadata_[std::move(key)] = std::string(cursor.value().text());
    }
  }
}

std::string Census::text(const format::Event& event, int field) const {
  if (field < 0) {
    return {};
  }
  const format::Value& value = event.values[static_cast<std::size_t>(field)];
  if (value.type == format::FieldType::kPooledString) {
    return std::string(decoder_->string(static_cast<std::uint32_t>(value.bits)).value_or(""));
  }
  return std::string(value.text());
}

// Segments repeat the records of the last seconds, and in order of time they come. Several runs may
// have recorded at the same time.
bool Census::is_repeated(const std::string& kind, std::uint64_t at_ns) {
  const std::pair key(run_, kind);
  if (last_shed_ns_.size() >= kMaxKept && !last_shed_ns_.contains(key)) {
    return true;
  }
  std::uint64_t& last_ns = last_shed_ns_[key];
  if (at_ns <= last_ns) {
    return true;
  }
  last_ns = at_ns;
  return false;
}

void Census::on_shed(const format::Event& event, const Plan& plan) {
  const std::string name = text(event, plan.fields[0]);
  if (is_repeated(name, event.timestamp_ns)) {
    return;
  }
  Shed& shed = shed_[name];
  shed.shed = sum_of(shed.shed, number(event, plan.fields[2], 0));
  if (plan.fields[1] >= 0) {
    const format::Value& rate = event.values[static_cast<std::size_t>(plan.fields[1])];
    shed.keep_one_in = std::max(shed.keep_one_in, shed_rate(rate));
  }
}

void Census::on_heap_profile(const format::Event& event, const Plan& plan) {
  const std::uint64_t chosen = number(event, plan.fields[0], 0);
  const std::uint64_t largest = number(event, plan.fields[1], 0);
  if (chosen == 0) {
    return;
  }
  heap_keep_one_in_ =
      std::max(heap_keep_one_in_, static_cast<double>(largest) / static_cast<double>(chosen));
}

void Census::on_bill(const format::Event& event, const Plan& plan) {
  bill_.elapsed_ns = sum_of(bill_.elapsed_ns, number(event, plan.fields[0], 0));
  bill_.collector_cpu_ns = sum_of(bill_.collector_cpu_ns, number(event, plan.fields[1], 0));
  bill_.host_cpu_ns = sum_of(bill_.host_cpu_ns, number(event, plan.fields[2], 0));
  bill_.bytes = sum_of(bill_.bytes, number(event, plan.fields[3], 0));
}

void Census::on_loss(const format::Event& event, const Plan& plan) {
  take_told();
  std::string cause = text(event, plan.fields[0]);
  if (loss_.size() >= kMaxKept && !loss_.contains(cause)) {
    cause = "(other causes)";
  }
  Loss& loss = loss_[cause];
  const std::uint64_t count = number(event, plan.fields[1], 0);
  loss.count = sum_of(loss.count, count);
  loss.unknown += count == 0 ? 1U : 0U;
  loss.first_ns = std::min(loss.first_ns, number(event, plan.fields[2], event.timestamp_ns));
  loss.last_ns = std::max(loss.last_ns, number(event, plan.fields[3], event.timestamp_ns));
  if (cause == kRecordingOff && off_.size() < kMaxKept) {
    off_.emplace_back(number(event, plan.fields[2], event.timestamp_ns),
                      number(event, plan.fields[3], event.timestamp_ns));
  } else if (cause == kRecordingOff) {
    has_more_off_ = true;
  }
}

// Stretches may overlap: of several runs, or as a recovery tells one again.
std::uint64_t Census::off_ns() const { return covered_ns(off_); }

std::map<std::string, Census::Loss> Census::loss() const {
  std::map<std::string, Loss> out = loss_;
  for (const SegmentGaps::Gap& gap : gaps_.gaps()) {
    Loss& loss = out[std::string(kMissingSegments)];
    ++loss.unknown;
    loss.first_ns = std::min(loss.first_ns, gap.begin_ns);
    loss.last_ns = std::max(loss.last_ns, gap.end_ns);
  }
  return out;
}

bool Census::has_unknown_loss() const {
  return !gaps_.gaps().empty() || std::any_of(loss_.begin(), loss_.end(), [](const auto& entry) {
    return entry.second.unknown != 0 && entry.first != kRecordingOff;
  });
}

std::uint64_t Census::lost_events() const {
  std::uint64_t lost = 0;
  for (const auto& [cause, loss] : loss_) {
    lost = sum_of(lost, loss.count);
  }
  return lost;
}

std::optional<std::uint64_t> Census::realtime_ns(std::uint64_t at_ns) const {
  const auto distance = [at_ns](const Anchor& anchor) {
    return anchor.monotonic_ns > at_ns ? anchor.monotonic_ns - at_ns : at_ns - anchor.monotonic_ns;
  };
  const auto nearest =
      std::min_element(anchors_.begin(), anchors_.end(),
                       [&](const Anchor& a, const Anchor& b) { return distance(a) < distance(b); });
  if (nearest == anchors_.end()) {
    return std::nullopt;
  }
  return nearest->realtime_ns + (at_ns - nearest->monotonic_ns);
}

}  // namespace dial9::analysis
