// The store's map: what each verb answers, and that its byte budget holds.
// SPDX-License-Identifier: Apache-2.0
#include "kv_store.h"

#include <gtest/gtest.h>

#include <string>

namespace checkout::kv {
namespace {

Reply set(Store& store, std::string key, std::string value) {
  return store.apply({Verb::kSet, std::move(key), std::move(value), 0});
}
Reply add(Store& store, std::string key, std::int64_t delta) {
  return store.apply({Verb::kAdd, std::move(key), "", delta});
}

TEST(KvStore, GivesBackWhatWasSetAndNothingElse) {
  Store store(1000);
  EXPECT_EQ(store.apply({Verb::kGet, "a", "", 0}).kind, ReplyKind::kNone);
  EXPECT_EQ(set(store, "a", "1").kind, ReplyKind::kOk);
  EXPECT_EQ(store.apply({Verb::kGet, "a", "", 0}).text, "1");
  EXPECT_EQ(store.apply({Verb::kDelete, "a", "", 0}).kind, ReplyKind::kOk);
  EXPECT_EQ(store.apply({Verb::kGet, "a", "", 0}).kind, ReplyKind::kNone);
  EXPECT_EQ(store.apply({Verb::kPing, "", "", 0}).kind, ReplyKind::kPong);
}

TEST(KvStore, AddsFromZeroAndRefusesWhatIsNoNumber) {
  Store store(1000);
  EXPECT_EQ(add(store, "n", 5).number, 5);
  EXPECT_EQ(add(store, "n", -7).number, -2);
  set(store, "text", "tea");
  EXPECT_EQ(add(store, "text", 1).kind, ReplyKind::kError);
  set(store, "max", "9223372036854775807");
  EXPECT_EQ(add(store, "max", 1).kind, ReplyKind::kError);
  EXPECT_EQ(store.apply({Verb::kGet, "max", "", 0}).text, "9223372036854775807");
}

TEST(KvStore, KeepsItsByteBudgetAndWhatItHadBeforeARefusal) {
  Store store(10);
  EXPECT_EQ(set(store, "k", "12345").kind, ReplyKind::kOk);
  EXPECT_EQ(set(store, "k", "1234567890").kind, ReplyKind::kError);
  EXPECT_EQ(store.apply({Verb::kGet, "k", "", 0}).text, "12345");
  EXPECT_EQ(set(store, "k", "123456789").kind, ReplyKind::kOk);
  EXPECT_EQ(store.used_bytes(), 10u);
  EXPECT_EQ(set(store, "j", "").kind, ReplyKind::kError);
  store.apply({Verb::kDelete, "k", "", 0});
  EXPECT_EQ(store.used_bytes(), 0u);
  EXPECT_EQ(set(store, "j", "").kind, ReplyKind::kOk);
}

}  // namespace
}  // namespace checkout::kv
