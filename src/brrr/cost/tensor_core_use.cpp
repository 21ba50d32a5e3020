#include "brrr/cost/tensor_core_use.h"

namespace brrr::cost {
namespace {

// A vector is a matrix of one row.
Layout matrix_of(Layout layout) {
  while (layout.rank() < 2) {
    layout.shape.insert(0, 1);
    layout.strides.insert(0, 0);
  }
  return layout;
}

// Leading axes are rows where one second factor serves all of them.
Layout with_joined_rows(const Layout& a, const Layout& b) {
  const int rank = a.rank();
  if (rank == 2 || b.rank() > 2 || a.shape[rank - 1] == 0) return a;
  return {{numel(a.shape) / a.shape[rank - 1], a.shape[rank - 1]},
          {a.strides[rank - 2], a.strides[rank - 1]},
          a.offset};
}

}  // namespace

std::optional<kernels::TensorCoreUse> tensor_cores_of(const compiler::Kernel& kernel,
                                                      kernels::GpuGeneration gpu) {
  for (const compiler::KernelPart& part : kernel.parts) {
    if (part.op->kind != OpKind::contraction) continue;
    const std::vector<compiler::CoreOperand> inputs = compiler::core_operands(kernel.core_inputs,
                                                                              kernel.inputs),
                                             outputs = compiler::core_operands(kernel.core_outputs,
                                                                               kernel.outputs);
    if (is_attention(*part.op))
      return kernels::attention_tensor_cores({.q = inputs[0].layout,
                                              .k = inputs[1].layout,
                                              .v = inputs[2].layout,
                                              .dtype = inputs[0].dtype,
                                              .scale = kernel.attrs.number("scale")});
    if (!is_matmul(*part.op) && part.op->role != OpRole::matmul_epilogue) continue;
    const Layout b = matrix_of(inputs[1].layout);
    return kernels::product_tensor_cores(
        {.a = with_joined_rows(matrix_of(inputs[0].layout), b),
         .b = part.op->role == OpRole::linear ? transpose_layout(b, 0, 1) : b,
         .a_dtype = inputs[0].dtype,
         .b_dtype = inputs[1].dtype,
         .c_dtype = outputs[0].dtype,
         .tf32 = kernel.attrs.has("tf32") && kernel.attrs.flag("tf32")},
        gpu);
  }
  return {};
}

}  // namespace brrr::cost
