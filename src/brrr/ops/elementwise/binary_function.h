// What the definitions of functions of several operands share.
#pragma once

#include "brrr/kernels/cpu/elementwise/binary_tiles.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/samples.h"

namespace brrr {

template <kernels::Binary kFunction, auto kInfer = infer_promoted, auto kSamples = samples_pairs>
constexpr OpDef pair_function(OpDef op) {
  op.kind = OpKind::elementwise;
  op.infer = kInfer;
  op.tiles = kernels::binary_tiles<kFunction>;
  op.cpu = kernels::run_elementwise;
  op.expression = kernels::binary_expression<kFunction>;
  op.function = {ScalarFunction::Family::binary, static_cast<uint8_t>(kFunction)};
  op.samples = kSamples;
  return op;
}

}  // namespace brrr
