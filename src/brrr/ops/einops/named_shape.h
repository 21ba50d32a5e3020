// Shapes by name, checked. A spec such as "batch seq hidden" binds each name to a size; the next
// tensor must agree:
//   ShapeNames names;
//   names.expect(x, "batch seq hidden");
//   names.expect(w, "hidden out");
// Numbers are sizes ("3 h w"), `_` is any size, `...` any number of axes. In signatures:
//   auto project = checked([](Shaped<"b s h"> x, Shaped<"h o"> w) -> Shaped<"b s o"> {
//     return matmul(x, w);
//   });
// A malformed spec does not compile. The CMake option BRRR_SHAPE_CHECKS=OFF removes all checks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {

#if defined(BRRR_SHAPE_CHECKS) && !BRRR_SHAPE_CHECKS
inline constexpr bool kShapeChecks = false;
#else
inline constexpr bool kShapeChecks = true;
#endif

// ---- specs, read at compile time or at run time ----------------------------------------------------

enum class SpecFault : uint8_t { none, character, dot, second_dots, number, too_many };

struct SpecTerm {
  enum class Kind : uint8_t { name, size, any, dots };
  Kind kind = Kind::any;
  int64_t size = 0;
  size_t position = 0, length = 0;
};

struct ShapeSpec {
  std::array<SpecTerm, kMaxRank + 1> terms{};  // one more than axes: `...` may stand for none
  int count = 0;
  int dots = -1;  // which term is `...`
  SpecFault fault = SpecFault::none;
  size_t fault_position = 0;
};

constexpr bool is_spec_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }
constexpr bool is_spec_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_spec_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Reads the term that starts at its position; its length is 0 where there is a fault.
constexpr SpecFault read_spec_term(std::string_view text, SpecTerm& term) {
  size_t end = term.position;
  if (text.substr(end).starts_with("...")) {
    term.kind = SpecTerm::Kind::dots;
    end += 3;
  } else if (is_spec_digit(text[end])) {
    term.kind = SpecTerm::Kind::size;
    for (; end < text.size() && is_spec_digit(text[end]); ++end) {
      if (term.size > 1'000'000'000'000'000) return SpecFault::number;
      term.size = 10 * term.size + (text[end] - '0');
    }
    if (end < text.size() && is_spec_letter(text[end])) return SpecFault::number;
  } else if (is_spec_letter(text[end])) {
    while (end < text.size() && (is_spec_letter(text[end]) || is_spec_digit(text[end]))) ++end;
    const bool any = text.substr(term.position, end - term.position) == "_";
    term.kind = any ? SpecTerm::Kind::any : SpecTerm::Kind::name;
  } else {
    return text[end] == '.' ? SpecFault::dot : SpecFault::character;
  }
  term.length = end - term.position;
  return SpecFault::none;
}

constexpr ShapeSpec parse_shape_spec(std::string_view text) {
  ShapeSpec spec;
  const auto faulty = [&](SpecFault fault, size_t position) {
    spec.fault = fault;
    spec.fault_position = position;
    return spec;
  };
  for (size_t i = 0; i < text.size();) {
    if (is_spec_space(text[i])) {
      ++i;
      continue;
    }
    SpecTerm term{.position = i};
    const SpecFault fault = read_spec_term(text, term);
    if (fault != SpecFault::none) return faulty(fault, i);
    const bool dots = term.kind == SpecTerm::Kind::dots;
    if (dots && spec.dots >= 0) return faulty(SpecFault::second_dots, i);
    const int axes = spec.count - (spec.dots >= 0 ? 1 : 0);
    if (!dots && axes == kMaxRank) return faulty(SpecFault::too_many, i);
    if (dots) spec.dots = spec.count;
    spec.terms[static_cast<size_t>(spec.count++)] = term;
    i += term.length;
  }
  return spec;
}

// A string that can be a template argument.
template <size_t kLength>
struct FixedString {
  char chars[kLength]{};
  consteval FixedString(const char (&text)[kLength]) {  // NOLINT: Shaped<"b s"> needs it implicit
    for (size_t i = 0; i < kLength; ++i) chars[i] = text[i];
  }
  constexpr std::string_view view() const { return {chars, kLength - 1}; }
};

template <FixedString kText>
inline constexpr SpecFault spec_fault = parse_shape_spec(kText.view()).fault;
template <FixedString kText>
inline constexpr bool is_well_formed = spec_fault<kText> == SpecFault::none;

// ---- checks ----------------------------------------------------------------------------------------

// Names bound to sizes, each with the tensor that bound it.
class ShapeNames {
 public:
  // Throws Error where x does not fit the spec or what the names are bound to; then binds nothing.
  void expect(const Tensor& x, std::string_view spec) {
    if constexpr (kShapeChecks) check_and_bind(x, parse_shape_spec(spec), spec);
  }
  void expect(const Tensor& x, const ShapeSpec& parsed, std::string_view spec) {
    if constexpr (kShapeChecks) check_and_bind(x, parsed, spec);
  }

 private:
  struct Seen {
    TensorType type;
    std::string spec;
  };
  struct Binding {
    size_t seen;              // the tensor that bound it
    size_t position, length;  // the name, inside its spec
    int64_t size;
  };

  void check_and_bind(const Tensor& x, const ShapeSpec& parsed, std::string_view spec);
  std::string_view name_of(const Binding& binding) const;
  void bind_name(const SpecTerm& term, int64_t size);

  std::vector<Seen> seen_;
  std::vector<Binding> bindings_;
};

inline void expect(const Tensor& x, std::string_view spec, ShapeNames& names) {
  names.expect(x, spec);
}
// One tensor alone: its rank, its numbers, and names that stand twice.
inline void expect(const Tensor& x, std::string_view spec) { ShapeNames().expect(x, spec); }

// A tensor whose shape fits the spec, checked when it is made from a Tensor. It is a Tensor in every
// other way.
template <FixedString kText>
class Shaped : public Tensor {
  static_assert(spec_fault<kText> != SpecFault::character,
                "Shaped: a shape is written with names, numbers, '_' and '...', parted by spaces");
  static_assert(spec_fault<kText> != SpecFault::dot,
                "Shaped: a single dot; any number of axes is '...'");
  static_assert(spec_fault<kText> != SpecFault::second_dots, "Shaped: '...' may stand once");
  static_assert(spec_fault<kText> != SpecFault::number,
                "Shaped: not a number (too large, or a name that begins with a digit)");
  static_assert(spec_fault<kText> != SpecFault::too_many,
                "Shaped: more axes than a tensor can have");

 public:
  static constexpr ShapeSpec kSpec = parse_shape_spec(kText.view());

  Shaped(const Tensor& x) : Tensor(x) { ShapeNames().expect(x, kSpec, kText.view()); }  // NOLINT
  void bind_to(ShapeNames& names) const { names.expect(*this, kSpec, kText.view()); }
};

template <typename T>
inline constexpr bool is_shaped = false;
template <FixedString kText>
inline constexpr bool is_shaped<Shaped<kText>> = true;

template <typename Value>
void bind_if_shaped(ShapeNames& names, const Value& value) {
  if constexpr (is_shaped<Value>) value.bind_to(names);
}

// Checks that names agree among the arguments; those that are not Shaped are left alone.
template <typename... Args>
void bind_shapes(const Args&... args) {
  if constexpr (kShapeChecks) {
    ShapeNames names;
    (bind_if_shaped(names, args), ...);
  }
}

// A function whose Shaped parameters, and Shaped result, are bound together at every call.
template <typename Function, typename Result, typename... Params>
class Checked {
 public:
  explicit Checked(Function function) : function_(std::move(function)) {}
  Result operator()(Params... params) const {
    if constexpr (!kShapeChecks) {
      return function_(std::forward<Params>(params)...);
    } else {
      ShapeNames names;
      (bind_if_shaped(names, params), ...);
      if constexpr (is_shaped<std::remove_cvref_t<Result>>) {
        Result result = function_(std::forward<Params>(params)...);
        bind_if_shaped(names, result);
        return result;
      } else {
        return function_(std::forward<Params>(params)...);
      }
    }
  }

 private:
  Function function_;
};

template <typename Function, typename Class, typename Result, typename... Params>
auto checked_as(Function function, Result (Class::*)(Params...) const) {
  return Checked<Function, Result, Params...>(std::move(function));
}
template <typename Result, typename... Params>
auto checked(Result (*function)(Params...)) {
  return Checked<Result (*)(Params...), Result, Params...>(function);
}
template <typename Function>
auto checked(Function function) {
  return checked_as(std::move(function), &Function::operator());
}

}  // namespace brrr
