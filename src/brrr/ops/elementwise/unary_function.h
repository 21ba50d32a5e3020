// What the definitions of functions of one operand share.
#pragma once

#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/unary_tiles.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/samples.h"

namespace brrr {

// Shorthand for gradient rules: what came in, what went out, and the gradient that arrived.
inline Tensor x_of(const GradCall& call) { return call.input(0); }
inline Tensor y_of(const GradCall& call) { return call.output(0); }
inline Tensor dy_of(const GradCall& call) { return call.output_grad(0); }

inline constexpr GradReads kReadsInput{.inputs = 1};
inline constexpr GradReads kReadsOutput{.outputs = 1};

// What functions of one operand have in common. Numbers keep their dtype; where the result is a float
// by nature, integers and bools become f32.
template <kernels::Unary kFunction>
constexpr OpDef number_function(OpDef op) {
  op.kind = OpKind::elementwise;
  op.dtypes = kNumbers;
  op.infer = infer_same;
  op.tiles = kernels::unary_tiles<kFunction>;
  op.cpu = kernels::run_elementwise;
  op.expression = kernels::unary_expression<kFunction>;
  op.function = {ScalarFunction::Family::unary, static_cast<uint8_t>(kFunction)};
  return op;
}

template <kernels::Unary kFunction>
constexpr OpDef float_function(OpDef op) {
  op = number_function<kFunction>(op);
  op.dtypes = kAnyDType;
  op.infer = infer_float;
  return op;
}

inline std::vector<Sample> with_attrs(std::vector<Sample> samples, const Attrs& attrs) {
  for (Sample& sample : samples) sample.attrs = attrs;
  return samples;
}

}  // namespace brrr
