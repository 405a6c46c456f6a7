// See labels.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/labels.h"

#include <cstring>

#include "recorder/label_changes.h"
#include "recorder/recording_state.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {
namespace {

// An open label. The compare-and-swap of its state claims it: whose it is << 32 | generation. An
// odd generation: open. Whose: a thread's id, or one of these numbers, which are no thread's.
constexpr std::uint32_t kNotTold = 0;  // a thread's that is beginning, or began unwatched
constexpr std::uint32_t kOfTask = 0xFFFF'FFFF;
constexpr std::uint32_t kOfEndedThread = 0xFFFF'FFFE;
struct alignas(64) Place {
  std::uint64_t state;
  std::uint64_t task;  // 0: of a thread. A word that strayed into another's entry is none of its
  std::uint64_t words[LabelText::kWords];
};
static_assert(sizeof(Place) == 128);
constinit Place g_places[kMaxOpenLabels] = {};  // 2 MiB of untouched memory until labels are used

// A task with labels: the word of its innermost one. `word` 0: nobody's, may be given to another.
struct Entry {
  std::uint64_t task;
  std::uint64_t word;
};
constexpr std::size_t kBuckets = 4096;
constexpr std::uint64_t kClaimed = ~std::uint64_t{0};  // no task
struct alignas(128) Bucket {
  Entry entries[kLabelTasksPerBucket];
};
constinit Bucket g_buckets[kBuckets] = {};  // 512 KiB, the same
constinit std::uint64_t g_dropped = 0;
constinit bool g_has_labels = false;  // was any ever begun
// A label of a thread ended elsewhere than it began, or not in order: which of those that are open
// is the thread's can't be told from outside any more.
constinit bool g_has_strays = false;

__thread std::uint64_t t_word __attribute__((tls_model("initial-exec"))) = 0;
// Where the next search begins, modulo kMaxOpenLabels; 0: this thread hasn't searched yet.
__thread std::uint32_t t_next_place __attribute__((tls_model("initial-exec"))) = 0;

std::uint64_t load(const std::uint64_t& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

std::uint64_t make_word(std::size_t place, std::uint32_t generation) noexcept {
  return std::uint64_t{place + 1} << 32 | generation;
}

std::uint32_t generation_of(std::uint64_t state) noexcept {
  return static_cast<std::uint32_t>(state);
}
std::uint32_t owner_of(std::uint64_t state) noexcept {
  return static_cast<std::uint32_t>(state >> 32);
}
std::uint64_t make_state(std::uint32_t owner, std::uint32_t generation) noexcept {
  return std::uint64_t{owner} << 32 | generation;
}

// The thread's first label.
[[gnu::cold, gnu::noinline]] void begin_labels_of_thread() noexcept {
  t_next_place = this_tid() * 0x9E37'79B1u;
  // Labels that it leaves open are given up at its end.
  if (!watch_thread_exit()) __atomic_store_n(&g_has_strays, true, __ATOMIC_RELAXED);
  __atomic_store_n(&g_has_labels, true, __ATOMIC_RELAXED);
}

// A place of its own, with its generation: 0 if none was found nearby.
std::uint64_t claim_place(std::uint32_t owner) noexcept {
  constexpr std::uint32_t kTries = 64;
  if (t_next_place == 0) begin_labels_of_thread();
  for (std::uint32_t i = 0; i < kTries; ++i) {
    const std::size_t at = (t_next_place + i) % kMaxOpenLabels;
    Place& place = g_places[at];
    std::uint64_t state = load(place.state);
    const std::uint32_t generation = generation_of(state) + 1;
    if (generation % 2 == 0) continue;
    // Acquire: the last tenant is done with the text (pairs with the release in give_back).
    if (__atomic_compare_exchange_n(&place.state, &state, make_state(owner, generation), false,
                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      // Release: who still reads the last tenant's text and meets a word of this one's finds the
      // generation changed (pairs with the acquire fence in copy_text).
      __atomic_thread_fence(__ATOMIC_RELEASE);
      t_next_place = static_cast<std::uint32_t>(at) + 1;
      return make_word(at, generation);
    }
  }
  t_next_place += kTries;
  return 0;
}

bool is_word(std::uint64_t word) noexcept {
  return word >> 32 >= 1 && word >> 32 <= kMaxOpenLabels;
}

Place& place_of(std::uint64_t word) noexcept { return g_places[(word >> 32) - 1]; }

// Of a thread's label, once it holds. Release: who reads whose it is finds the text.
void tell_owner(std::uint64_t word) noexcept {
  __atomic_store_n(&place_of(word).state, make_state(this_tid(), static_cast<std::uint32_t>(word)),
                   __ATOMIC_RELEASE);
}

void give_back(std::uint64_t word) noexcept {
  // Release: whoever copied before this sees the text whole; who copies on finds it changed.
  __atomic_store_n(&place_of(word).state, make_state(0, static_cast<std::uint32_t>(word) + 1),
                   __ATOMIC_RELEASE);
}

// The longest beginning of at most `most` bytes that doesn't end inside a UTF-8 character.
std::size_t cut(const text& t, std::size_t most) noexcept {
  if (t.size <= most) return t.size;
  if (t.size >= kMostFieldBytes) return 0;  // no text is that long: the size is an error's
  std::size_t size = most;
  while (size > 0 && (static_cast<unsigned char>(t.data[size]) & 0xC0) == 0x80) --size;
  return size;
}

void write_text(std::uint64_t word, std::uint64_t task, const text& name,
                const text& value) noexcept {
  LabelText label{};
  label.name_bytes = static_cast<std::uint8_t>(cut(name, kMaxLabelNameBytes));
  label.value_bytes = static_cast<std::uint8_t>(cut(value, kMaxLabelValueBytes));
  std::memcpy(label.text, name.data, label.name_bytes);
  std::memcpy(label.text + label.name_bytes, value.data, label.value_bytes);
  std::uint64_t words[LabelText::kWords];
  std::memcpy(words, &label, sizeof words);
  Place& place = place_of(word);
  __atomic_store_n(&place.task, task, __ATOMIC_RELAXED);
  for (std::size_t i = 0; i < LabelText::kWords; ++i) {
    __atomic_store_n(&place.words[i], words[i], __ATOMIC_RELAXED);
  }
}

Bucket& bucket_of(std::uint64_t task) noexcept { return g_buckets[label_bucket(task)]; }

Entry* find_entry(std::uint64_t task) noexcept {
  for (Entry& entry : bucket_of(task).entries) {
    if (load(entry.task) == task) return &entry;
  }
  return nullptr;
}

bool is_open(std::uint64_t word, std::uint64_t task) noexcept {
  if (word == 0) return false;
  const Place& place = place_of(word);
  return load(place.task) == task &&
         generation_of(load(place.state)) == static_cast<std::uint32_t>(word);
}

// An entry that is free, or whose label has ended: two branches of a task at a time may leave one
// behind. Its task is `kClaimed` then; null: there is none.
Entry* claim_entry(std::uint64_t task) noexcept {
  for (const bool takes_over : {false, true}) {
    for (Entry& entry : bucket_of(task).entries) {
      std::uint64_t owner = load(entry.task);
      if (owner == kClaimed || (owner != 0 && !takes_over)) continue;
      if (owner != 0 && is_open(load(entry.word), owner)) continue;
      const std::uint64_t former = owner;
      if (!__atomic_compare_exchange_n(&entry.task, &owner, kClaimed, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED)) {
        continue;
      }
      if (former == 0 || !is_open(__atomic_load_n(&entry.word, __ATOMIC_SEQ_CST), former)) {
        return &entry;
      }
      __atomic_store_n(&entry.task, former, __ATOMIC_RELEASE);  // labelled meanwhile
    }
  }
  return nullptr;
}

// Puts the word in; false: no room. `before` is the one that it covers.
bool enter(std::uint64_t task, std::uint64_t word, std::uint64_t* before) noexcept {
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    Entry* entry = find_entry(task);
    if (entry == nullptr) break;
    // Release: who finds the word finds the text (pairs with the acquire in read_word).
    // Sequentially consistent with whoever claims the entry: he sees the word, or this sees him.
    *before = __atomic_exchange_n(&entry->word, word, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&entry->task, __ATOMIC_SEQ_CST) == task) return true;
    // It went to another task meanwhile, which gets its own word back.
    std::uint64_t own = word;
    __atomic_compare_exchange_n(&entry->word, &own, *before, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
  }
  Entry* entry = claim_entry(task);
  if (entry == nullptr) return false;
  *before = 0;
  __atomic_store_n(&entry->word, word, __ATOMIC_RELAXED);
  __atomic_store_n(&entry->task, task, __ATOMIC_RELEASE);
  return true;
}

// Takes the word out, if it is the innermost one still. Where it isn't (labels that end out of
// order, two branches of a task at a time) what refers to it reads as none once it is given back.
void leave(std::uint64_t task, std::uint64_t word, std::uint64_t before) noexcept {
  if (!is_open(before, task)) before = 0;
  for (Entry& entry : bucket_of(task).entries) {
    if (load(entry.task) != task) continue;
    std::uint64_t own = word;
    if (!__atomic_compare_exchange_n(&entry.word, &own, before, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)) {
      continue;  // two branches that began at once have an entry each
    }
    // The task's last one: the entry goes, unless another branch of the task labels meanwhile.
    std::uint64_t owner = task;
    if (before != 0 || !__atomic_compare_exchange_n(&entry.task, &owner, kClaimed, false,
                                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
      return;
    }
    const std::uint64_t left = __atomic_load_n(&entry.word, __ATOMIC_SEQ_CST);
    __atomic_store_n(&entry.task, left == 0 ? 0 : task, __ATOMIC_RELEASE);
    return;
  }
}

std::uint64_t read_word(std::uint64_t task) noexcept {
  if (task == 0) return 0;
  const Entry* entry = find_entry(task);
  if (entry == nullptr) return 0;
  const std::uint64_t word = __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE);
  return load(entry->task) == task ? word : 0;
}

// False: the label has ended, or isn't the task's.
bool copy_text(std::uint64_t word, std::uint64_t task, LabelText* label) noexcept {
  const Place& place = place_of(word);
  const auto generation = static_cast<std::uint32_t>(word);
  if (generation_of(__atomic_load_n(&place.state, __ATOMIC_ACQUIRE)) != generation) return false;
  const std::uint64_t owner = load(place.task);
  std::uint64_t words[LabelText::kWords];
  for (std::size_t i = 0; i < LabelText::kWords; ++i) words[i] = load(place.words[i]);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (generation_of(load(place.state)) != generation) return false;
  if (owner != task) return false;
  std::memcpy(label, words, sizeof words);
  return true;
}

}  // namespace

void read_label(std::uint64_t task, LabelText* label) noexcept {
  read_label_of(task, t_word, label);
}

void read_label_of(std::uint64_t task, std::uint64_t thread_word, LabelText* label) noexcept {
  const std::uint64_t of_task = read_word(task);
  if (of_task != 0 && copy_text(of_task, task, label)) return;
  if (is_word(thread_word) && copy_text(thread_word, 0, label)) return;
  label->name_bytes = 0;
  label->value_bytes = 0;
}

const std::uint64_t* thread_label_word() noexcept { return &t_word; }

std::uint64_t labels_dropped() noexcept { return load(g_dropped); }

std::size_t label_bucket(std::uint64_t task) noexcept {
  const std::uint64_t mixed = task * 0x9E37'79B9'7F4A'7C15;
  return (mixed ^ mixed >> 32) % kBuckets;
}

bool has_labels() noexcept { return __atomic_load_n(&g_has_labels, __ATOMIC_RELAXED); }

void read_own_label(std::uint64_t task, LabelText* label) noexcept {
  const std::uint64_t word = task != 0 ? read_word(task) : t_word;
  if (is_word(word) && copy_text(word, task, label)) return;
  label->name_bytes = 0;
  label->value_bytes = 0;
}

bool end_labels_of_thread() noexcept {
  if (t_word == 0) return false;
  t_word = 0;
  signal_fence();
  const std::uint32_t own = this_tid();
  for (Place& place : g_places) {
    std::uint64_t state = load(place.state);
    if (owner_of(state) != own || generation_of(state) % 2 == 0) continue;
    __atomic_compare_exchange_n(&place.state, &state,
                                make_state(kOfEndedThread, generation_of(state)), false,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  return true;
}

bool list_task_labels(ListLabel list, void* self) {
  for (const Bucket& bucket : g_buckets) {
    for (const Entry& entry : bucket.entries) {
      const std::uint64_t task = __atomic_load_n(&entry.task, __ATOMIC_ACQUIRE);
      if (task == 0) continue;
      if (task == kClaimed) return false;
      if (find_entry(task) != &entry) continue;  // the second of two branches that began at once
      LabelText label;
      const std::uint64_t word = __atomic_load_n(&entry.word, __ATOMIC_ACQUIRE);
      if (!is_word(word)) continue;
      if (!copy_text(word, task, &label)) {
        // It ended: is an outer one back meanwhile? Else it ended out of order, and there is none.
        if (__atomic_load_n(&entry.word, __ATOMIC_ACQUIRE) != word) return false;
        continue;
      }
      if (load(entry.task) != task) return false;
      if (!list(self, {.task = task, .is_known = true, .label = label})) return false;
    }
  }
  return true;
}

bool list_thread_labels(ListLabel list, void* self) {
  const bool has_strays = __atomic_load_n(&g_has_strays, __ATOMIC_RELAXED);
  for (std::size_t at = 0; at < kMaxOpenLabels; ++at) {
    const std::uint64_t state = __atomic_load_n(&g_places[at].state, __ATOMIC_ACQUIRE);
    const std::uint32_t owner = owner_of(state);
    if (generation_of(state) % 2 == 0 || owner == kOfTask || owner == kOfEndedThread) continue;
    if (owner == kNotTold) return false;
    OpenLabel open{.tid = owner};
    open.is_known = !has_strays && copy_text(make_word(at, generation_of(state)), 0, &open.label);
    if (!list(self, open)) return false;
  }
  return true;
}

}  // namespace dial9::internal

namespace dial9 {

void label::begin(text name, text value) noexcept {
  using namespace internal;
  if (name.size == 0) return;
  task_ = t_task.id;
  const std::uint64_t word = claim_place(task_ == 0 ? kNotTold : kOfTask);
  if (word == 0) {
    __atomic_fetch_add(&g_dropped, 1, __ATOMIC_RELAXED);
    return;
  }
  write_text(word, task_, name, value);
  if (task_ == 0) {
    signal_fence();  // a handler on this thread that finds the word finds the text
    before_ = t_word;
    t_word = word;
  } else if (!enter(task_, word, &before_)) {
    give_back(word);
    __atomic_fetch_add(&g_dropped, 1, __ATOMIC_RELAXED);
    return;
  }
  word_ = word;
  if (__builtin_expect(!are_labels_watched(), 1)) return;
  if (task_ == 0) tell_owner(word);
  tell_label(task_);
}

void label::end() noexcept {
  using namespace internal;
  if (task_ == 0 && t_word != word_) return end_astray();
  if (task_ != 0) {
    leave(task_, word_, before_);
  } else {
    t_word = before_;
    signal_fence();
  }
  give_back(word_);
  if (__builtin_expect(are_labels_watched(), 0)) tell_label(task_);
}

// Of a thread; it isn't its innermost one, or another thread's.
void label::end_astray() noexcept {
  using namespace internal;
  __atomic_store_n(&g_has_strays, true, __ATOMIC_RELAXED);
  const std::uint32_t owner = owner_of(load(place_of(word_).state));
  give_back(word_);
  if (!are_labels_watched()) return;
  if (owner == this_tid()) return tell_label(0);
  if (owner != kNotTold && owner != kOfEndedThread) tell_label_unknown(owner);
}

}  // namespace dial9
