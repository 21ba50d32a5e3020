#include "brrr/kernels/cuda/gemm/epilogue_cuda.h"

#include "brrr/device/cuda/runtime.h"
#include "brrr/kernels/cuda/elementwise/copy_cuda.h"
#include "brrr/kernels/cuda/gemm/matmul_cuda.h"

namespace brrr::kernels {
namespace {

// GELU fused by the library is slower than a kernel of its own before Hopper: it is computed by a second
// kernel there.
constexpr int kFirstGeluArchitecture = 9;

const Operand* input_at(const CudaCall& call, size_t i) {
  return i < call.inputs.size() ? &call.inputs[i] : nullptr;
}
const Operand* output_at(const CudaCall& call, size_t i) {
  return i < call.outputs.size() ? &call.outputs[i] : nullptr;
}

ProductExtras gelu_extras(const CudaCall& call) {
  const Operand *bias = input_at(call, 2), *z = output_at(call, 1);
  const GemmEpilogue kept = bias ? GemmEpilogue::bias_gelu_aux : GemmEpilogue::gelu_aux,
                     gone = bias ? GemmEpilogue::bias_gelu : GemmEpilogue::gelu;
  return {.epilogue = z ? kept : gone, .bias = bias, .aux = z};
}

ProductExtras gelu_backward_extras(const CudaCall& call) {
  const Operand* sums = output_at(call, 1);
  return {.epilogue = sums ? GemmEpilogue::dgelu_bias_grad : GemmEpilogue::dgelu,
          .aux = input_at(call, 2),
          .sums = sums};
}

ProductExtras column_sums_extras(const CudaCall& call) {
  return {
      .epilogue = GemmEpilogue::bias_grad, .addend = input_at(call, 2), .sums = output_at(call, 1)};
}

ProductExtras add_extras(const CudaCall& call) {
  const Operand* bias = input_at(call, 3);
  return {.epilogue = bias ? GemmEpilogue::bias : GemmEpilogue::none,
          .bias = bias,
          .addend = input_at(call, 2)};
}

ProductExtras extras_of(const CudaCall& call, MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::gelu: return gelu_extras(call);
    case MatmulEpilogue::gelu_backward: return gelu_backward_extras(call);
    case MatmulEpilogue::column_sums: return column_sums_extras(call);
    case MatmulEpilogue::add: return add_extras(call);
  }
  fail(call.op.name, " has no epilogue");
}

std::vector<Operand> operands_of(std::span<const Layout> layouts, std::span<const DType> dtypes) {
  // Nobody reads there: the library looks at the alignment of addresses, and plans are aligned to this.
  constexpr uintptr_t kSomewhere = 256;
  std::vector<Operand> operands;
  for (size_t i = 0; i < layouts.size(); ++i)
    operands.push_back({reinterpret_cast<std::byte*>(kSomewhere), &layouts[i], dtypes[i]});
  return operands;
}

// The library sums rows of a factor only where these lie along m, as dY^T does; others are copied so.
bool needs_turned_copy(const CudaCall& call) { return call.inputs[0].layout->strides[0] != 1; }

// A call with its first operand in the second part of the workspace, columns in order.
class TurnedCall {
 public:
  explicit TurnedCall(const CudaCall& call)
      : layout_(transpose_layout(
            contiguous_layout({call.inputs[0].shape()[1], call.inputs[0].shape()[0]}), 0, 1)),
        inputs_(call.inputs.begin(), call.inputs.end()),
        call_{call.op, {}, call.outputs, call.attrs, call.workspace, call.stream, call.chip} {
    inputs_[0].layout = &layout_;
    call_.inputs = inputs_;
    product_bytes_ = (product_cuda_workspace(call_, column_sums_extras(call_)) + kAlignment - 1) /
                     kAlignment * kAlignment;
  }
  int64_t workspace_bytes() const {
    return product_bytes_ + storage_bytes(inputs_[0].dtype, numel(layout_.shape));
  }
  void run(const CudaCall& call) {
    inputs_[0].base = call.workspace.data() + product_bytes_;
    copy_elements_cuda(call, call.inputs[0], inputs_[0]);
    call_.workspace = call.workspace.first(static_cast<size_t>(product_bytes_));
    run_product_cuda(call_, column_sums_extras(call_));
  }

 private:
  static constexpr int64_t kAlignment = 256;
  Layout layout_;
  std::vector<Operand> inputs_;
  CudaCall call_;
  int64_t product_bytes_ = 0;
};

}  // namespace

void matmul_gelu_cuda(const CudaCall& call) { run_product_cuda(call, gelu_extras(call)); }
int64_t matmul_gelu_cuda_workspace(const CudaCall& call) {
  return product_cuda_workspace(call, gelu_extras(call));
}

void matmul_gelu_backward_cuda(const CudaCall& call) {
  run_product_cuda(call, gelu_backward_extras(call));
}
int64_t matmul_gelu_backward_cuda_workspace(const CudaCall& call) {
  return product_cuda_workspace(call, gelu_backward_extras(call));
}

void matmul_sums_cuda(const CudaCall& call) {
  if (needs_turned_copy(call)) return TurnedCall(call).run(call);
  run_product_cuda(call, column_sums_extras(call));
}
int64_t matmul_sums_cuda_workspace(const CudaCall& call) {
  if (needs_turned_copy(call)) return TurnedCall(call).workspace_bytes();
  return product_cuda_workspace(call, column_sums_extras(call));
}

void matmul_add_cuda(const CudaCall& call) { run_product_cuda(call, add_extras(call)); }
int64_t matmul_add_cuda_workspace(const CudaCall& call) {
  return product_cuda_workspace(call, add_extras(call));
}

bool has_epilogue_cuda(const EpilogueQuestion& question, const Chip& chip,
                       std::optional<int> device) {
  const bool is_gelu = question.epilogue == MatmulEpilogue::gelu ||
                       question.epilogue == MatmulEpilogue::gelu_backward;
  if (is_gelu && chip.major < kFirstGeluArchitecture) return false;
  const std::vector<Operand> inputs = operands_of(question.input_layouts, question.input_dtypes),
                             outputs = operands_of(question.output_layouts, question.output_dtypes);
  const CudaCall call{
      question.op, inputs, outputs, question.attrs, {}, device ? cuda::stream(*device) : nullptr,
      chip};
  return has_product_cuda(call, extras_of(call, question.epilogue));
}

}  // namespace brrr::kernels
