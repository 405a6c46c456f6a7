// SPDX-License-Identifier: Apache-2.0
#include "asio/op_sites.h"

#include <cstring>
#include <mutex>

namespace dial9::asio::hooks {

constinit std::atomic<const OpSite*> g_site_slots[kSiteSlots];

namespace {

constexpr std::uint32_t kMaxSites = 512;

constinit OpSite g_sites[kMaxSites] = {};
constinit std::uint32_t g_site_count = 0;
constinit std::mutex g_mutex;
constinit runtime::Place g_other_place{"asio operation"};
constinit const OpSite g_other{"", "", OpKind::kOther, false, false, &g_other_place};

bool contains(const char* text, const char* part) noexcept {
  return std::strstr(text, part) != nullptr;
}

const OpSite* probe(std::uint32_t* slot, const char* type, const char* name) noexcept {
  for (;; *slot = (*slot + 1) % kSiteSlots) {
    const OpSite* site = g_site_slots[*slot].load(std::memory_order_acquire);
    if (site == nullptr || (site->name == name && site->type == type)) return site;
  }
}

}  // namespace

OpKind classify(const char* type, const char* name) noexcept {
  if (std::strcmp(type, "strand_executor") == 0 || std::strcmp(type, "strand") == 0) {
    return OpKind::kStrand;
  }
  if (std::strcmp(type, "deadline_timer") == 0) return OpKind::kTimer;
  if (std::strcmp(type, "io_context") == 0 || std::strcmp(type, "thread_pool") == 0 ||
      std::strcmp(type, "system_executor") == 0) {
    return OpKind::kPosted;
  }
  if (std::strcmp(type, "socket") != 0 && std::strcmp(type, "descriptor") != 0)
    return OpKind::kOther;
  if (contains(name, "receive") || contains(name, "read") || contains(name, "accept")) {
    return OpKind::kRead;
  }
  if (contains(name, "send") || contains(name, "write") || contains(name, "connect")) {
    return OpKind::kWrite;
  }
  return OpKind::kAnyEvent;
}

[[gnu::cold]] const OpSite* add_op_site(const char* type, const char* name) noexcept {
  std::uint32_t slot = site_slot(type, name);
  if (const OpSite* known = probe(&slot, type, name)) return known;
  char text[128];
  std::size_t size = 0;
  for (const char* c = type; *c != 0 && size < 60; ++c) text[size++] = *c;
  text[size++] = ' ';
  for (const char* c = name; *c != 0 && size < sizeof text; ++c) text[size++] = *c;
  runtime::Place* place = runtime::intern_place(text, size);
  const OpKind kind = classify(type, name);
  const bool is_queue = kind == OpKind::kPosted;

  std::lock_guard lock(g_mutex);
  if (const OpSite* known = probe(&slot, type, name)) return known;
  if (g_site_count == kMaxSites) return &g_other;
  OpSite* site = &g_sites[g_site_count++];
  *site = OpSite{type, name, kind, is_queue, contains(name, "connect"), place};
  g_site_slots[slot].store(site, std::memory_order_release);
  return site;
}

}  // namespace dial9::asio::hooks
