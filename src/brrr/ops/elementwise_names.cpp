// The functors of ops/*_functors.h by name, for the text of generated kernels.
#include <fmt/format.h>

#include "brrr/ops/activation_tiles.h"
#include "brrr/ops/binary_tiles.h"
#include "brrr/ops/elementwise_text.h"
#include "brrr/ops/unary_settings.h"
#include "brrr/ops/unary_tiles.h"

namespace brrr {
namespace {

std::string_view name_of(Unary function) {
  switch (function) {
    case Unary::neg: return "Neg";
    case Unary::abs: return "Abs";
    case Unary::sign: return "Sign";
    case Unary::square: return "Square";
    case Unary::relu: return "Relu";
    case Unary::exp: return "Exp";
    case Unary::log: return "Log";
    case Unary::sqrt: return "Sqrt";
    case Unary::rsqrt: return "Rsqrt";
    case Unary::reciprocal: return "Reciprocal";
    case Unary::sin: return "Sin";
    case Unary::cos: return "Cos";
    case Unary::tanh: return "Tanh";
    case Unary::sigmoid: return "Sigmoid";
    case Unary::erf: return "Erf";
    case Unary::gelu: return "Gelu";
    case Unary::silu: return "Silu";
    case Unary::expm1: return "Expm1";
    case Unary::log1p: return "Log1p";
    case Unary::tan: return "Tan";
    case Unary::leaky_relu: return "LeakyRelu";
    case Unary::softplus: return "Softplus";
    case Unary::gelu_tanh: return "GeluTanh";
    case Unary::floor: return "Floor";
    case Unary::ceil: return "Ceil";
    case Unary::round: return "Round";
    case Unary::clamp: return "Clamp";
    case Unary::isnan: return "IsNan";
    case Unary::isinf: return "IsInf";
    case Unary::isfinite: return "IsFinite";
    case Unary::logical_not: return "LogicalNot";
    case Unary::to_tf32: return "ToTf32";
  }
  return {};
}

std::string_view name_of(Binary function) {
  switch (function) {
    case Binary::add: return "Add";
    case Binary::sub: return "Sub";
    case Binary::mul: return "Mul";
    case Binary::div: return "Div";
    case Binary::pow: return "Pow";
    case Binary::maximum: return "Maximum";
    case Binary::minimum: return "Minimum";
    case Binary::equal: return "Equal";
    case Binary::not_equal: return "NotEqual";
    case Binary::less: return "Less";
    case Binary::less_equal: return "LessEqual";
    case Binary::greater: return "Greater";
    case Binary::greater_equal: return "GreaterEqual";
    case Binary::where: return "Where";
    case Binary::fmod: return "Fmod";
    case Binary::remainder: return "Remainder";
    case Binary::logical_and: return "LogicalAnd";
    case Binary::logical_or: return "LogicalOr";
    case Binary::logical_xor: return "LogicalXor";
  }
  return {};
}

std::string_view name_of(ActivationGrad function) {
  switch (function) {
    case ActivationGrad::gelu: return "GeluBackward";
    case ActivationGrad::gelu_tanh: return "GeluTanhBackward";
    case ActivationGrad::silu: return "SiluBackward";
  }
  return {};
}

template <typename T>
std::string text_of(T value) {
  if constexpr (std::integral<T>)
    return integer_text(value);
  else
    return number_text(value, sizeof(T) == 4 ? ComputeType::f32 : ComputeType::f64);
}

template <typename T>
std::string clamp_text(const Attrs& attrs, ComputeType type) {
  const auto clamp = functors::make_clamp<T>(attrs);
  return fmt::format("functors::Clamp<{}>{{{}, {}}}(x0)", compute_type_text(type),
                     text_of(clamp.low), text_of(clamp.high));
}

}  // namespace

std::string unary_text(Unary function, const Attrs& attrs, ComputeType type) {
  if (function == Unary::leaky_relu)
    return fmt::format("functors::LeakyRelu<{}>{{{}}}(x0)", compute_type_text(type),
                       number_text(attrs.number("slope"), type));
  if (function == Unary::clamp)
    return visit_compute(type, [&]<typename T>() { return clamp_text<T>(attrs, type); });
  return fmt::format("functors::{}::of(x0)", name_of(function));
}

std::string binary_text(Binary function, const Attrs&, ComputeType) {
  const char* operands = function == Binary::where ? "x0, x1, x2" : "x0, x1";
  return fmt::format("functors::{}::of({})", name_of(function), operands);
}

std::string activation_backward_text(ActivationGrad function, const Attrs&, ComputeType) {
  return fmt::format("functors::{}::of(x0, x1)", name_of(function));
}

}  // namespace brrr
