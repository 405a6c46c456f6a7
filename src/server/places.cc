// See places.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/places.h"

namespace dial9::server {

void Places::add(Place& place) noexcept {
  place.of_client = 1;
  for (Place* at = first_; at != nullptr; at = at->next) {
    if (at->client != place.client) continue;
    place.of_client = ++at->of_client;
  }
  place.previous = nullptr;
  place.next = first_;
  if (first_ != nullptr) first_->previous = &place;
  first_ = &place;
  ++size_;
}

void Places::remove(Place& place) noexcept {
  if (place.of_client == 0) return;
  if (place.previous != nullptr) place.previous->next = place.next;
  if (place.next != nullptr) place.next->previous = place.previous;
  if (first_ == &place) first_ = place.next;
  place.next = place.previous = nullptr;
  place.of_client = 0;
  --size_;
  for (Place* at = first_; at != nullptr; at = at->next) {
    if (at->client == place.client) --at->of_client;
  }
}

Place* Places::overdue(std::uint64_t now_ns) noexcept {
  Place* at = first_;
  while (at != nullptr && at->deadline_ns > now_ns) at = at->next;
  return at;
}

Place* Places::victim_of(const Place& newcomer) noexcept {
  Place* victim = nullptr;
  for (Place* at = first_; at != nullptr; at = at->next) {
    if (at == &newcomer || at->waits_since_ns == Place::kNever) continue;
    const bool is_worse = victim == nullptr || at->of_client > victim->of_client;
    const bool is_longer = victim != nullptr && at->of_client == victim->of_client &&
                           at->waits_since_ns < victim->waits_since_ns;
    if (is_worse || is_longer) victim = at;
  }
  return victim != nullptr && victim->of_client >= newcomer.of_client ? victim : nullptr;
}

}  // namespace dial9::server
