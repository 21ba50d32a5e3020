// What the definitions of functions of several operands share.
#pragma once

#include "brrr/ops/binary_tiles.h"
#include "brrr/ops/elementwise_cpu.h"
#include "brrr/ops/elementwise_cuda.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/samples.h"

namespace brrr {

template <Binary kFunction, auto kInfer = infer_promoted, auto kSamples = samples_pairs>
constexpr OpDef pair_function(OpDef op) {
  op.kind = OpKind::elementwise;
  op.infer = kInfer;
  op.tiles = binary_tiles<kFunction>;
  op.cpu = run_elementwise;
  op.cuda_text = binary_cuda_text<kFunction>;
  op.cuda = BRRR_CUDA_KERNEL(run_binary_cuda<kFunction>);
  op.samples = kSamples;
  return op;
}

}  // namespace brrr
