// The functors of kernels/scalar/*_functors.h as expressions of x0, x1, ..., for the text of generated kernels.
#include <fmt/format.h>

#include "brrr/kernels/cpu/elementwise/activation_tiles.h"
#include "brrr/kernels/cpu/elementwise/binary_tiles.h"
#include "brrr/kernels/cpu/elementwise/unary_tiles.h"
#include "brrr/kernels/cuda/codegen/elementwise_text.h"
#include "brrr/kernels/scalar/functor_traits.h"
#include "brrr/kernels/scalar/unary_settings.h"
#include "brrr/tensor/element.h"

namespace brrr::kernels {
namespace {

using namespace functors;

// A setting as a constant of the type that the kernel computes in.
std::string setting_text(double value, ComputeType type) {
  if (type == ComputeType::u64)
    return integer_text(static_cast<int64_t>(convert_element<uint64_t>(value)), type);
  return type == ComputeType::i64 ? integer_text(convert_element<int64_t>(value), type)
                                  : number_text(value, type);
}

// A row of a table, for the text of a call: every functor computes in float.
struct FunctorRow {
  std::string_view functor;
  int operands, settings;
  Settings (*read)(const Attrs&);

  std::string call(const Attrs& attrs, ComputeType type) const {
    std::string text = fmt::format("functors::{}::of(x0", functor);
    for (int i = 1; i < operands; ++i) text += fmt::format(", x{}", i);
    const Settings values = read(attrs);
    for (int i = 0; i < settings; ++i)
      text += ", " + setting_text(values[static_cast<size_t>(i)], type);
    return text + ")";
  }
};

#define BRRR_ROW(name, functor, chain) \
  {#functor, kOperands<functor, float>, kSettings<functor>, read_settings<functor>},
constexpr FunctorRow kUnary[] = {BRRR_UNARY_FUNCTIONS(BRRR_ROW)};
constexpr FunctorRow kBinary[] = {BRRR_BINARY_FUNCTIONS(BRRR_ROW)};
constexpr FunctorRow kActivationGrads[] = {BRRR_ACTIVATION_GRADS(BRRR_ROW)};
#undef BRRR_ROW

}  // namespace

std::string unary_text(Unary function, const Attrs& attrs, ComputeType type) {
  return kUnary[static_cast<size_t>(function)].call(attrs, type);
}

std::string binary_text(Binary function, const Attrs& attrs, ComputeType type) {
  return kBinary[static_cast<size_t>(function)].call(attrs, type);
}

std::string activation_backward_text(ActivationGrad function, const Attrs& attrs,
                                     ComputeType type) {
  return kActivationGrads[static_cast<size_t>(function)].call(attrs, type);
}

}  // namespace brrr::kernels
