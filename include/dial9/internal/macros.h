// The preprocessor's part of DIAL9_EVENT and DIAL9_SPAN: a struct from a name and a list of
// (type, field) pairs. Plain C++17 preprocessing, up to 32 fields; nothing here is for users.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// DIAL9_PP_EACH(M, name, (a, b), (c, d)) -> M(a, b) M(c, d); a name alone -> nothing.
#define DIAL9_PP_E0(M, n)
#define DIAL9_PP_E1(M, n, x) M x
#define DIAL9_PP_E2(M, n, x, ...) M x DIAL9_PP_E1(M, n, __VA_ARGS__)
#define DIAL9_PP_E3(M, n, x, ...) M x DIAL9_PP_E2(M, n, __VA_ARGS__)
#define DIAL9_PP_E4(M, n, x, ...) M x DIAL9_PP_E3(M, n, __VA_ARGS__)
#define DIAL9_PP_E5(M, n, x, ...) M x DIAL9_PP_E4(M, n, __VA_ARGS__)
#define DIAL9_PP_E6(M, n, x, ...) M x DIAL9_PP_E5(M, n, __VA_ARGS__)
#define DIAL9_PP_E7(M, n, x, ...) M x DIAL9_PP_E6(M, n, __VA_ARGS__)
#define DIAL9_PP_E8(M, n, x, ...) M x DIAL9_PP_E7(M, n, __VA_ARGS__)
#define DIAL9_PP_E9(M, n, x, ...) M x DIAL9_PP_E8(M, n, __VA_ARGS__)
#define DIAL9_PP_E10(M, n, x, ...) M x DIAL9_PP_E9(M, n, __VA_ARGS__)
#define DIAL9_PP_E11(M, n, x, ...) M x DIAL9_PP_E10(M, n, __VA_ARGS__)
#define DIAL9_PP_E12(M, n, x, ...) M x DIAL9_PP_E11(M, n, __VA_ARGS__)
#define DIAL9_PP_E13(M, n, x, ...) M x DIAL9_PP_E12(M, n, __VA_ARGS__)
#define DIAL9_PP_E14(M, n, x, ...) M x DIAL9_PP_E13(M, n, __VA_ARGS__)
#define DIAL9_PP_E15(M, n, x, ...) M x DIAL9_PP_E14(M, n, __VA_ARGS__)
#define DIAL9_PP_E16(M, n, x, ...) M x DIAL9_PP_E15(M, n, __VA_ARGS__)
#define DIAL9_PP_E17(M, n, x, ...) M x DIAL9_PP_E16(M, n, __VA_ARGS__)
#define DIAL9_PP_E18(M, n, x, ...) M x DIAL9_PP_E17(M, n, __VA_ARGS__)
#define DIAL9_PP_E19(M, n, x, ...) M x DIAL9_PP_E18(M, n, __VA_ARGS__)
#define DIAL9_PP_E20(M, n, x, ...) M x DIAL9_PP_E19(M, n, __VA_ARGS__)
#define DIAL9_PP_E21(M, n, x, ...) M x DIAL9_PP_E20(M, n, __VA_ARGS__)
#define DIAL9_PP_E22(M, n, x, ...) M x DIAL9_PP_E21(M, n, __VA_ARGS__)
#define DIAL9_PP_E23(M, n, x, ...) M x DIAL9_PP_E22(M, n, __VA_ARGS__)
#define DIAL9_PP_E24(M, n, x, ...) M x DIAL9_PP_E23(M, n, __VA_ARGS__)
#define DIAL9_PP_E25(M, n, x, ...) M x DIAL9_PP_E24(M, n, __VA_ARGS__)
#define DIAL9_PP_E26(M, n, x, ...) M x DIAL9_PP_E25(M, n, __VA_ARGS__)
#define DIAL9_PP_E27(M, n, x, ...) M x DIAL9_PP_E26(M, n, __VA_ARGS__)
#define DIAL9_PP_E28(M, n, x, ...) M x DIAL9_PP_E27(M, n, __VA_ARGS__)
#define DIAL9_PP_E29(M, n, x, ...) M x DIAL9_PP_E28(M, n, __VA_ARGS__)
#define DIAL9_PP_E30(M, n, x, ...) M x DIAL9_PP_E29(M, n, __VA_ARGS__)
#define DIAL9_PP_E31(M, n, x, ...) M x DIAL9_PP_E30(M, n, __VA_ARGS__)
#define DIAL9_PP_E32(M, n, x, ...) M x DIAL9_PP_E31(M, n, __VA_ARGS__)
#define DIAL9_PP_PICK(n, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16,  \
                      _17, _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, \
                      _32, e, ...)                                                               \
  e
#define DIAL9_PP_EACH(M, ...)                                                                      \
  DIAL9_PP_PICK(__VA_ARGS__, DIAL9_PP_E32, DIAL9_PP_E31, DIAL9_PP_E30, DIAL9_PP_E29, DIAL9_PP_E28, \
                DIAL9_PP_E27, DIAL9_PP_E26, DIAL9_PP_E25, DIAL9_PP_E24, DIAL9_PP_E23,              \
                DIAL9_PP_E22, DIAL9_PP_E21, DIAL9_PP_E20, DIAL9_PP_E19, DIAL9_PP_E18,              \
                DIAL9_PP_E17, DIAL9_PP_E16, DIAL9_PP_E15, DIAL9_PP_E14, DIAL9_PP_E13,              \
                DIAL9_PP_E12, DIAL9_PP_E11, DIAL9_PP_E10, DIAL9_PP_E9, DIAL9_PP_E8, DIAL9_PP_E7,   \
                DIAL9_PP_E6, DIAL9_PP_E5, DIAL9_PP_E4, DIAL9_PP_E3, DIAL9_PP_E2, DIAL9_PP_E1,      \
                DIAL9_PP_E0, ~)(M, __VA_ARGS__)
#define DIAL9_PP_FIRST_OF(n, ...) n
#define DIAL9_PP_FIRST(...) DIAL9_PP_FIRST_OF(__VA_ARGS__, ~)

#define DIAL9_PP_FIELD(type, field) type field;
#define DIAL9_PP_DESCRIBE(type, field) ::dial9::internal::describe<type>(#field),
#define DIAL9_PP_VISIT(type, field) visitor(field);
#define DIAL9_PP_TEXT_OF(x) #x
#define DIAL9_PP_TEXT(x) DIAL9_PP_TEXT_OF(x)

// What write_event() needs of an event struct: its fields' descriptions (closed by an empty one)
// and a visitor over its values, both in the declared order.
#define DIAL9_PP_UNPACK(...) __VA_ARGS__
#define DIAL9_PP_EACH_IN(M, list) DIAL9_PP_EACH(M, DIAL9_PP_UNPACK list)
#define DIAL9_PP_LATE_FIELD(type, field) ::dial9::optional<type> field;
#define DIAL9_PP_LATE_DESCRIBE(type, field) \
  ::dial9::internal::describe<::dial9::optional<type>>(#field),
#define DIAL9_PP_MEMBERS(...) DIAL9_PP_MEMBERS_OF(DIAL9_PP_FIELD, DIAL9_PP_DESCRIBE, (__VA_ARGS__))
#define DIAL9_PP_MEMBERS_OF(FIELD, DESCRIBE, list)                      \
  DIAL9_PP_EACH_IN(FIELD, list)                                         \
  static constexpr ::dial9::internal::FieldSpec dial9_fields[] = {      \
      DIAL9_PP_EACH_IN(DESCRIBE, list){}};                              \
  template <class Visitor>                                              \
  constexpr void dial9_visit([[maybe_unused]] Visitor& visitor) const { \
    DIAL9_PP_EACH_IN(DIAL9_PP_VISIT, list)                              \
  }

#define DIAL9_PP_EVENT(...)                              \
  struct DIAL9_PP_FIRST(__VA_ARGS__) {                   \
    DIAL9_PP_MEMBERS(__VA_ARGS__)                        \
    static constexpr const char* dial9_name() {          \
      return DIAL9_PP_TEXT(DIAL9_PP_FIRST(__VA_ARGS__)); \
    }                                                    \
  }
