// See short_name.h. A reader of the grammar of the Itanium C++ ABI, section 5.1: what is printed is
// the name alone, and types and expressions are read only to find where they end.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/short_name.h"

#include <algorithm>
#include <utility>

namespace dial9::symbolize {
namespace {

constexpr int kMostDeep = 128;
constexpr std::string_view kDots = "…";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

struct Operator {
  std::string_view code;
  std::string_view text;
  int operands;  // in expressions; 0: of a form of its own
};

constexpr Operator kOperators[] = {
    {"aN", "&=", 2}, {"aS", "=", 2},         {"aa", "&&", 2},  {"ad", "&", 1},
    {"an", "&", 2},  {"aw", " co_await", 1}, {"cl", "()", 0},  {"cm", ",", 2},
    {"co", "~", 1},  {"cv", "", 0},          {"dV", "/=", 2},  {"da", " delete[]", 1},
    {"de", "*", 1},  {"dl", " delete", 1},   {"ds", ".*", 2},  {"dv", "/", 2},
    {"eO", "^=", 2}, {"eo", "^", 2},         {"eq", "==", 2},  {"ge", ">=", 2},
    {"gt", ">", 2},  {"ix", "[]", 2},        {"lS", "<<=", 2}, {"le", "<=", 2},
    {"ls", "<<", 2}, {"lt", "<", 2},         {"mI", "-=", 2},  {"mL", "*=", 2},
    {"mi", "-", 2},  {"ml", "*", 2},         {"mm", "--", 1},  {"na", " new[]", 0},
    {"ne", "!=", 2}, {"ng", "-", 1},         {"nt", "!", 1},   {"nw", " new", 0},
    {"oR", "|=", 2}, {"oo", "||", 2},        {"or", "|", 2},   {"pL", "+=", 2},
    {"pl", "+", 2},  {"pm", "->*", 2},       {"pp", "++", 1},  {"ps", "+", 1},
    {"pt", "->", 0}, {"qu", "?", 3},         {"rM", "%=", 2},  {"rS", ">>=", 2},
    {"rm", "%", 2},  {"rs", ">>", 2},        {"ss", "<=>", 2}, {"li", "", 0},
};

// Reads forward; the first thing that isn't understood makes everything after it fail.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool is_at_end() const { return at_ >= text_.size(); }
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }

  // The name of a function, as it is shown, is added to `out`. Its parameters are left.
  bool function(std::string& out);

 private:
  // Counts how deep a rule is within others.
  class Depth {
   public:
    explicit Depth(Reader& reader) : reader_(reader) { ++reader_.depth_; }
    ~Depth() { --reader_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    bool is_too_deep() const { return reader_.depth_ > kMostDeep; }

   private:
    Reader& reader_;
  };

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view what) const { return rest().starts_with(what); }
  bool take(std::string_view what) {
    if (!starts(what)) return false;
    at_ += what.size();
    return true;
  }
  void digits() {
    while (is_digit(peek())) ++at_;
  }
  bool numbered_end();  // [number] '_'
  bool until_end(bool (Reader::*rule)());

  bool name(std::string& out);
  bool type();
  bool call_offset();
  bool nested(std::string& out);
  bool local(std::string& out);
  bool discriminator();
  bool unqualified(std::string& out);
  bool source_name(std::string& out);
  bool operator_name(std::string& out);
  bool lambda(std::string& out);
  bool tags();
  bool substitution(std::string& out);
  bool structor(std::string& out);

  bool encoding();
  bool special_name();
  bool skipped_name();
  bool d_type();
  bool function_type();
  bool array_type();
  bool template_param();
  bool template_args();
  bool template_arg();
  bool literal();

  bool expression();
  bool operator_expression();
  bool call_like(std::string_view code);
  bool unresolved();
  bool base_name();
  bool function_param();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string last_;  // the innermost source name: what constructors are called
};

bool Reader::numbered_end() {
  while (is_digit(peek()) || is_upper(peek())) ++at_;
  return take("_");
}

// `rule` again and again, up to an 'E', which is taken.
bool Reader::until_end(bool (Reader::*rule)()) {
  while (!take("E")) {
    if (is_at_end() || !(this->*rule)()) return false;
  }
  return true;
}

// How far a thunk moves the object.
bool Reader::call_offset() {
  const bool is_virtual = take("v");
  if (!is_virtual && !take("h")) return false;
  take("n");
  if (!numbered_end()) return false;
  if (!is_virtual) return true;
  take("n");
  return numbered_end();
}

bool Reader::function(std::string& out) {
  if (starts("Th") || starts("Tv")) {
    at_ += 1;
    out += "thunk to ";
    if (!call_offset()) return false;
  } else if (take("Tc")) {
    out += "thunk to ";
    if (!call_offset() || !call_offset()) return false;
  } else if (take("TW")) {
    out += "TLS wrapper of ";
  } else if (take("TH")) {
    out += "TLS init of ";
  }
  return name(out);
}

bool Reader::name(std::string& out) {
  const Depth depth(*this);
  if (depth.is_too_deep()) return false;
  if (take("N")) return nested(out);
  if (take("Z")) return local(out);
  if (peek() == 'S' && peek(1) != 't') {
    if (!substitution(out)) return false;
  } else {
    if (take("St")) out += "std::";
    if (!unqualified(out)) return false;
  }
  if (peek() != 'I') return true;
  out += "<…>";
  return template_args();
}

bool Reader::nested(std::string& out) {
  while (take("r") || take("V") || take("K")) {
  }
  if (!take("R")) take("O");
  bool is_first = true;
  bool is_structor = false;
  while (!take("E")) {
    if (peek() == 'I') {
      if (is_first || !template_args()) return false;
      out += "<…>";
      continue;
    }
    if (take("M")) continue;        // of a lambda in a member's initializer
    if (is_structor) return false;  // nothing is inside one: each would repeat the name before
    if (!is_first) out += "::";
    is_first = false;
    if (take("St")) {
      out += "std";
    } else if (peek() == 'S') {
      if (!substitution(out)) return false;
    } else if (peek() == 'T') {
      out += kDots;
      if (!template_param()) return false;
    } else if (starts("Dt") || starts("DT")) {
      out += kDots;
      if (!d_type()) return false;
    } else if (peek() == 'C' || (peek() == 'D' && is_digit(peek(1)))) {
      is_structor = true;
      if (!structor(out)) return false;
    } else if (!unqualified(out)) {
      return false;
    }
  }
  return !is_first;
}

bool Reader::structor(std::string& out) {
  const bool is_destructor = take("D");
  if (!is_destructor && !take("C")) return false;
  const bool is_inherited = take("I");
  if (!is_digit(peek())) return false;
  ++at_;
  if (is_inherited && !type()) return false;
  out += is_destructor ? "~" : "";
  out += last_.empty() ? kDots : std::string_view(last_);
  return tags();
}

bool Reader::local(std::string& out) {
  std::string function;
  if (!name(function)) return false;
  while (!take("E")) {
    if (is_at_end() || !type()) return false;
  }
  out += function + "(…)::";
  if (take("s")) {
    out += "string literal";
    return discriminator();
  }
  if (take("d") && !numbered_end()) return false;
  return name(out) && discriminator();
}

bool Reader::discriminator() {
  if (take("__")) {
    digits();
    return take("_");
  }
  if (peek() == '_' && is_digit(peek(1))) at_ += 2;
  return true;
}

bool Reader::unqualified(std::string& out) {
  take("L");  // of internal linkage
  bool is_fine = false;
  if (is_digit(peek())) {
    is_fine = source_name(out);
  } else if (take("Ut")) {
    out += "{unnamed type}";
    is_fine = numbered_end();
  } else if (take("Ul")) {
    is_fine = lambda(out);
  } else if (take("DC")) {
    out += "[structured binding]";
    std::string ignored;
    while (is_digit(peek()) && source_name(ignored)) {
    }
    is_fine = take("E");
  } else {
    take("F");  // a friend that is a member
    is_fine = is_digit(peek()) ? source_name(out) : operator_name(out);
  }
  return is_fine && tags();
}

bool Reader::tags() {
  std::string ignored;
  while (take("B")) {
    const std::string kept = last_;
    if (!source_name(ignored)) return false;
    last_ = kept;
  }
  return true;
}

bool Reader::source_name(std::string& out) {
  std::size_t length = 0;
  if (!is_digit(peek())) return false;
  while (is_digit(peek())) {
    length = length * 10 + static_cast<std::size_t>(peek() - '0');
    if (length > text_.size()) return false;
    ++at_;
  }
  if (length == 0 || length > text_.size() - at_) return false;
  const std::string_view found = text_.substr(at_, length);
  at_ += length;
  last_ = found.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : std::string(found);
  out += last_;
  return true;
}

bool Reader::lambda(std::string& out) {
  const std::string kept = last_;
  while (!take("E")) {
    // Parameters of a template lambda.
    if (take("Ty")) continue;
    if (take("Tn")) {
      if (!type()) return false;
      continue;
    }
    if (is_at_end() || !type()) return false;
  }
  last_ = kept;
  out += "{lambda}";
  return numbered_end();
}

bool Reader::operator_name(std::string& out) {
  if (take("cv")) {
    out += "operator …";
    return type();
  }
  if (take("li")) {
    out += "operator\"\" ";
    return source_name(out);
  }
  for (const Operator& one : kOperators) {
    if (!take(one.code)) continue;
    out += "operator";
    out += one.text;
    return true;
  }
  return false;
}

// What it stands for would have to be looked for; the library's own have names.
bool Reader::substitution(std::string& out) {
  constexpr std::pair<char, std::string_view> kKnown[] = {{'a', "allocator"}, {'b', "basic_string"},
                                                          {'s', "string"},    {'i', "istream"},
                                                          {'o', "ostream"},   {'d', "iostream"}};
  if (!take("S")) return false;
  for (const auto& [code, text] : kKnown) {
    if (peek() != code) continue;
    ++at_;
    last_ = code == 's' || code == 'b' ? "basic_string" : std::string(text);
    out += "std::" + std::string(text);
    return tags();
  }
  last_.clear();
  out += kDots;
  return numbered_end();
}

// --- what is only read

bool Reader::skipped_name() {
  std::string ignored;
  const std::string kept = last_;
  const bool is_fine = name(ignored);
  last_ = kept;
  return is_fine;
}

bool Reader::special_name() {
  if (take("TV") || take("TT") || take("TI") || take("TS")) return type();
  if (take("GV") || take("TW") || take("TH")) return skipped_name();
  if (take("GR")) return skipped_name() && numbered_end();
  return false;
}

// Up to the 'E' that ends what it stands in, which isn't taken.
bool Reader::encoding() {
  const Depth depth(*this);
  if (depth.is_too_deep()) return false;
  if (peek() == 'T' || peek() == 'G') return special_name();
  if (!skipped_name()) return false;
  while (!is_at_end() && peek() != 'E' && peek() != '.') {
    if (!type()) return false;
  }
  return true;
}

bool Reader::type() {
  const Depth depth(*this);
  if (depth.is_too_deep()) return false;
  const char first = peek();
  if (std::string_view("rVKPROCG").find(first) != std::string_view::npos && first != '\0') {
    ++at_;
    return type();
  }
  switch (first) {
    case 'F':
      return function_type();
    case 'A':
      return array_type();
    case 'M':
      ++at_;
      return type() && type();
    case 'D':
      return d_type();
    case 'T':
      if (std::string_view("sue").find(peek(1)) != std::string_view::npos) {
        at_ += 2;  // "struct", "union", "enum" before a name
        return skipped_name();
      }
      return template_param() && (peek() != 'I' || template_args());
    case 'U':
      if (peek(1) == 'l' || peek(1) == 't') return skipped_name();
      ++at_;
      {
        std::string ignored;
        if (!source_name(ignored)) return false;
      }
      return (peek() != 'I' || template_args()) && type();
    case 'u': {
      ++at_;
      std::string ignored;
      return source_name(ignored) && (peek() != 'I' || template_args());
    }
    case 'S':
    case 'N':
    case 'Z':
    case 'L':
      return skipped_name();
    default:
      break;
  }
  if (is_digit(first)) return skipped_name();
  if (!is_lower(first)) return false;
  ++at_;  // a builtin one
  return true;
}

bool Reader::d_type() {
  ++at_;
  const char second = peek();
  ++at_;
  switch (second) {
    case 't':
    case 'T':
      return expression() && take("E") && (peek() != 'I' || template_args());
    case 'p':
      return type();
    case 'o':
      return function_type();
    case 'O':
      return expression() && take("E") && function_type();
    case 'w':
      return until_end(&Reader::type) && function_type();
    case 'v':
      if (take("_")) return expression() && take("_") && type();
      digits();
      return take("_") && type();
    case 'B':
    case 'U':
    case 'F':
      if (is_digit(peek())) {
        digits();
        return take("_") || take("b") || take("x");
      }
      return expression() && take("_");
    default:
      return is_lower(second);  // decimal, char16_t, auto, nullptr_t, ...
  }
}

bool Reader::function_type() {
  if (!take("F")) return false;
  take("Y");
  while (!take("E")) {
    if (take("RE") || take("OE")) return true;
    if (is_at_end() || !type()) return false;
  }
  return true;
}

bool Reader::array_type() {
  ++at_;
  if (is_digit(peek())) {
    digits();
  } else if (peek() != '_' && !expression()) {
    return false;
  }
  return take("_") && type();
}

bool Reader::template_param() {
  if (!take("T")) return false;
  if (take("L")) {
    digits();
    if (!take("__") && !take("_")) return false;
  }
  return numbered_end();
}

bool Reader::template_args() {
  const Depth depth(*this);
  if (depth.is_too_deep() || !take("I")) return false;
  const std::string kept = std::exchange(last_, {});
  const bool is_fine = until_end(&Reader::template_arg);
  last_ = kept;
  return is_fine;
}

bool Reader::template_arg() {
  if (peek() == 'L' && !is_digit(peek(1))) return literal();
  if (take("X")) return expression() && take("E");
  if (take("J") || take("I")) return until_end(&Reader::template_arg);  // a pack
  if (take("Q")) return expression();                                   // constraints
  return type();
}

bool Reader::literal() {
  if (!take("L")) return false;
  if (take("_Z") || take("Z")) return encoding() && take("E");
  if (!type()) return false;
  while (is_digit(peek()) || (peek() >= 'a' && peek() <= 'f') || peek() == 'n' || peek() == '_') {
    ++at_;
  }
  return take("E");
}

bool Reader::function_param() {
  if (take("fpT")) return true;
  if (take("fL")) {
    digits();
    if (!take("p")) return false;
  } else if (!take("fp")) {
    return false;
  }
  while (take("r") || take("V") || take("K")) {
  }
  return numbered_end();
}

bool Reader::expression() {
  const Depth depth(*this);
  if (depth.is_too_deep()) return false;
  if (peek() == 'L') return literal();
  if (peek() == 'T') return template_param() && (peek() != 'I' || template_args());
  if (starts("fp") || (starts("fL") && is_digit(peek(2)))) return function_param();
  if (is_digit(peek()) || starts("sr") || starts("on") || starts("dn")) return unresolved();
  take("gs");
  for (const std::string_view code : {"cl", "cp", "cv", "tl", "il", "nw", "na", "sP"}) {
    if (take(code)) return call_like(code);
  }
  for (const std::string_view cast : {"dc", "sc", "cc", "rc"}) {
    if (take(cast)) return type() && expression();
  }
  if (take("ti") || take("st") || take("at")) return type();
  if (take("te") || take("sz") || take("az") || take("nx") || take("sp") || take("tw")) {
    return expression();
  }
  if (take("tr")) return true;
  if (take("sZ")) return starts("T") ? template_param() : function_param();
  if (take("dt") || take("pt")) return expression() && unresolved();
  if (take("fl") || take("fr")) {
    at_ += 2;
    return expression();
  }
  if (take("fL") || take("fR")) {
    at_ += 2;
    return expression() && expression();
  }
  return operator_expression();
}

bool Reader::call_like(std::string_view code) {
  if (code == "sP") return until_end(&Reader::template_arg);
  if (code == "tl" && !type()) return false;
  if (code == "cv") {
    if (!type()) return false;
    return take("_") ? until_end(&Reader::expression) : expression();
  }
  if (code == "nw" || code == "na") {
    while (!take("_")) {
      if (is_at_end() || !expression()) return false;
    }
    if (!type()) return false;
    return take("pi") ? until_end(&Reader::expression) : starts("il") ? expression() : take("E");
  }
  return until_end(&Reader::expression);
}

bool Reader::operator_expression() {
  for (const Operator& one : kOperators) {
    if (one.operands == 0 || !take(one.code)) continue;
    if (one.code == "pp" || one.code == "mm") take("_");
    for (int i = 0; i < one.operands; ++i) {
      if (!expression()) return false;
    }
    return true;
  }
  return false;
}

bool Reader::base_name() {
  std::string ignored;
  if (take("on")) {
    if (!operator_name(ignored)) return false;
  } else if (take("dn")) {
    return is_digit(peek()) ? base_name() : type();
  } else if (!source_name(ignored) || !tags()) {
    return false;
  }
  return peek() != 'I' || template_args();
}

bool Reader::unresolved() {
  take("gs");
  if (!take("sr")) return base_name();
  if (take("N")) {
    if (!type()) return false;
    while (!take("E")) {
      if (!base_name()) return false;
    }
    return base_name();
  }
  if (is_digit(peek())) {  // names, up to an 'E', then the last one
    while (!take("E")) {
      if (!base_name()) return false;
    }
    return base_name();
  }
  return type() && base_name();
}

// Of several functions that compilers made of one: their ends are cut off, and said in words.
std::string take_parts(std::string_view* name) {
  constexpr std::pair<std::string_view, std::string_view> kCoroutine[] = {
      {".actor", " [coroutine]"},
      {".resume", " [coroutine]"},
      {".destroy", " [coroutine's end]"},
      {".cleanup", " [coroutine's end]"}};
  std::string parts;
  for (;;) {
    const std::size_t dot = name->rfind('.');
    if (dot == std::string_view::npos || dot == 0) return parts;
    const std::string_view end = name->substr(dot);
    for (const auto& [part, text] : kCoroutine) {
      if (end == part) {
        name->remove_suffix(end.size());
        return std::string(text) + parts;
      }
    }
    const bool is_number = end.find_first_not_of("0123456789", 1) == std::string_view::npos;
    const bool is_clone = is_number || end == ".cold" || end == ".constprop" || end == ".isra" ||
                          end == ".part" || end == ".lto_priv" || end == ".llvm";
    if (!is_clone) return parts;
    if (!is_number) parts.insert(0, " [clone " + std::string(end) + "]");
    name->remove_suffix(end.size());
  }
}

}  // namespace

std::optional<std::string> short_name(std::string_view mangled) {
  if (mangled.size() > kMostShortenedBytes || !mangled.starts_with("_Z")) return std::nullopt;
  mangled.remove_prefix(2);
  const std::string parts = take_parts(&mangled);
  Reader reader(mangled);
  std::string out;
  if (!reader.function(out)) return std::nullopt;
  if (!reader.is_at_end()) out += reader.rest() == "v" ? "()" : "(…)";
  return out + parts;
}

}  // namespace dial9::symbolize
