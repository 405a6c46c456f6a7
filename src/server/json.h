// The server's JSON value: nlohmann's, but for two functions that a request without memory must not
// go through. Strongest property: taking a value apart allocates nothing (the library's destructor
// does, and would end the process), and making one that fails gives back what it took.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/json_fwd.h"

namespace dial9::server {

template <class T, class Enabled>
struct JsonConversion : nlohmann::adl_serializer<T, Enabled> {};

namespace json_details {

template <class T>
void destroy(T* of) {
  std::allocator<T> memory;
  std::destroy_at(of);
  memory.deallocate(of, 1);
}

}  // namespace json_details
}  // namespace dial9::server

// The library keeps what it takes apart in a vector, so that no depth of nesting exhausts the
// stack. Ours are as deep as the code that makes them; none is parsed. Null: there was no memory
// for what the type says.
template <>
inline void dial9::server::json::json_value::destroy(value_t t) {
  using dial9::server::json_details::destroy;
  switch (t) {
    case value_t::object:
      if (object != nullptr) destroy(object);
      break;
    case value_t::array:
      if (array != nullptr) destroy(array);
      break;
    case value_t::string:
      if (string != nullptr) destroy(string);
      break;
    case value_t::binary:
      if (binary != nullptr) destroy(binary);
      break;
    default:
      break;
  }
}

// The library's doesn't give its object back. Delegates: a value that is whole has its destructor
// called.
template <>
inline dial9::server::json::basic_json(initializer_list_t init, bool type_deduction,
                                       value_t manual_type)
    : basic_json(nullptr) {
  bool is_object = type_deduction || manual_type == value_t::object;
  for (const auto& element : init) {
    is_object =
        is_object && element->is_array() && element->size() == 2 && (*element)[0].is_string();
  }
  if (!is_object) {
    *this = basic_json(array_t(init.begin(), init.end()));
    return;
  }
  object_t made;
  for (const auto& element : init) {
    basic_json pair = element.moved_or_copied();
    made.emplace(std::move(pair[0].template get_ref<string_t&>()), std::move(pair[1]));
  }
  *this = basic_json(std::move(made));
}
