// The driver of every elementwise op on a GPU. Large calls get a kernel generated for their shapes; the
// others, and all where NVRTC is missing, run one built-in kernel that asks at run time what to do.
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/ops/activation_tiles.h"
#include "brrr/ops/binary_tiles.h"
#include "brrr/ops/unary_tiles.h"

namespace brrr {

// A function that the built-in kernels know. `none`: an op of somebody else, known by its text alone.
struct BuiltinFunction {
  enum class Family : uint8_t { none, unary, binary, activation_backward } family;
  uint8_t function = 0;
};

void run_elementwise_cuda(const CudaCall& call, BuiltinFunction function);
// For ops of users: an OpDef with `cuda_text` takes this as its `cuda`.
void run_elementwise_cuda(const CudaCall& call);

template <Unary kFunction>
void run_unary_cuda(const CudaCall& call) {
  run_elementwise_cuda(call, {BuiltinFunction::Family::unary, static_cast<uint8_t>(kFunction)});
}
template <Binary kFunction>
void run_binary_cuda(const CudaCall& call) {
  run_elementwise_cuda(call, {BuiltinFunction::Family::binary, static_cast<uint8_t>(kFunction)});
}
template <ActivationGrad kFunction>
void run_activation_backward_cuda(const CudaCall& call) {
  run_elementwise_cuda(
      call, {BuiltinFunction::Family::activation_backward, static_cast<uint8_t>(kFunction)});
}

}  // namespace brrr
