// Which ops have a kernel on a CUDA GPU: one row per op. Elementwise ops with an expression need none: one driver runs
// them all. An op without a kernel runs as its composition.
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "brrr/base/error.h"
#include "brrr/graph/cuda_call.h"
#include "brrr/kernels/cuda/attention/attention_cuda.h"
#include "brrr/kernels/cuda/elementwise/copy_cuda.h"
#include "brrr/kernels/cuda/elementwise/elementwise_cuda.h"
#include "brrr/kernels/cuda/gemm/epilogue_cuda.h"
#include "brrr/kernels/cuda/gemm/fp8_cuda.h"
#include "brrr/kernels/cuda/gemm/matmul_cuda.h"
#include "brrr/kernels/cuda/index/index_cuda.h"
#include "brrr/kernels/cuda/random/random_cuda.h"
#include "brrr/kernels/cuda/random/sample_tokens_cuda.h"
#include "brrr/kernels/cuda/reduce/reduce_cuda.h"
#include "brrr/kernels/cuda/rows/norm_cuda.h"
#include "brrr/kernels/cuda/rows/rope_cuda.h"
#include "brrr/kernels/cuda/rows/softmax_cuda.h"
#include "brrr/ops/matmul/fp8.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

struct Row {
  const OpDef* op;
  CudaKernel kernel;
};

const Row kRows[] = {
    {&attention_op, {.run = BRRR_CUDA_KERNEL(kernels::attention_cuda), .strided_outputs = 0b1}},
    {&attention_backward_op,
     {.run = BRRR_CUDA_KERNEL(kernels::attention_backward_cuda),
      .workspace = kernels::attention_backward_cuda_workspace,
      .strided_outputs = 0b111}},
    {&classifier_op, {.run = BRRR_CUDA_KERNEL(kernels::classifier_cuda)}},
    {&cast_op, {.run = BRRR_CUDA_KERNEL(kernels::run_copy_cuda)}},
    {&copy_op, {.run = BRRR_CUDA_KERNEL(kernels::run_copy_cuda)}},
    {&full_op, {.run = BRRR_CUDA_KERNEL(kernels::full_cuda)}},
    {&arange_op, {.run = BRRR_CUDA_KERNEL(kernels::arange_cuda)}},
    {&number_op, {.run = BRRR_CUDA_KERNEL(kernels::number_cuda)}},
    {&cross_entropy_op, {.run = BRRR_CUDA_KERNEL(kernels::cross_entropy_cuda)}},
    {&cross_entropy_backward_op, {.run = BRRR_CUDA_KERNEL(kernels::cross_entropy_backward_cuda)}},
    {&draw_tokens_op, {.run = BRRR_CUDA_KERNEL(kernels::draw_tokens_cuda)}},
    {&dropout_op, {.run = BRRR_CUDA_KERNEL(kernels::dropout_cuda)}},
    {&matmul_gelu_op,
     {.run = BRRR_CUDA_KERNEL(kernels::matmul_gelu_cuda),
      .workspace = kernels::matmul_gelu_cuda_workspace}},
    {&matmul_gelu_backward_op,
     {.run = BRRR_CUDA_KERNEL(kernels::matmul_gelu_backward_cuda),
      .workspace = kernels::matmul_gelu_backward_cuda_workspace}},
    {&matmul_sums_op,
     {.run = BRRR_CUDA_KERNEL(kernels::matmul_sums_cuda),
      .workspace = kernels::matmul_sums_cuda_workspace}},
    {&matmul_add_op,
     {.run = BRRR_CUDA_KERNEL(kernels::matmul_add_cuda),
      .workspace = kernels::matmul_add_cuda_workspace}},
    {&quantize_op, {.run = BRRR_CUDA_KERNEL(kernels::quantize_cuda)}},
    {&matmul_scaled_op,
     {.run = BRRR_CUDA_KERNEL(kernels::matmul_scaled_cuda),
      .workspace = kernels::matmul_scaled_cuda_workspace}},
    {&gather_op, {.run = BRRR_CUDA_KERNEL(kernels::gather_cuda)}},
    {&scatter_add_op,
     {.run = BRRR_CUDA_KERNEL(kernels::scatter_add_cuda),
      .workspace = kernels::scatter_add_cuda_workspace}},
    {&embedding_op, {.run = BRRR_CUDA_KERNEL(kernels::embedding_cuda)}},
    {&embedding_grad_op,
     {.run = BRRR_CUDA_KERNEL(kernels::embedding_grad_cuda),
      .workspace = kernels::embedding_grad_cuda_workspace}},
    {&index_select_op, {.run = BRRR_CUDA_KERNEL(kernels::index_select_cuda)}},
    {&concat_op, {.run = BRRR_CUDA_KERNEL(kernels::concat_cuda)}},
    {&layer_norm_op, {.run = BRRR_CUDA_KERNEL(kernels::layer_norm_cuda)}},
    {&log_softmax_op, {.run = BRRR_CUDA_KERNEL(kernels::log_softmax_cuda)}},
    {&matmul_op,
     {.run = BRRR_CUDA_KERNEL(kernels::matmul_cuda), .workspace = kernels::matmul_cuda_workspace}},
    {&linear_op,
     {.run = BRRR_CUDA_KERNEL(kernels::linear_cuda), .workspace = kernels::matmul_cuda_workspace}},
    {&layer_norm_backward_op,
     {.run = BRRR_CUDA_KERNEL(kernels::layer_norm_backward_cuda),
      .workspace = kernels::norm_backward_cuda_workspace}},
    {&rms_norm_backward_op,
     {.run = BRRR_CUDA_KERNEL(kernels::rms_norm_backward_cuda),
      .workspace = kernels::norm_backward_cuda_workspace}},
    {&pad_op, {.run = BRRR_CUDA_KERNEL(kernels::pad_cuda)}},
    {&flip_op, {.run = BRRR_CUDA_KERNEL(kernels::flip_cuda)}},
    {&place_slice_op, {.run = BRRR_CUDA_KERNEL(kernels::place_slice_cuda)}},
    {&max_pool2d_op, {.run = BRRR_CUDA_KERNEL(kernels::max_pool2d_cuda)}},
    {&uniform_op, {.run = BRRR_CUDA_KERNEL(kernels::uniform_cuda)}},
    {&normal_op, {.run = BRRR_CUDA_KERNEL(kernels::normal_cuda)}},
    {&truncated_normal_op, {.run = BRRR_CUDA_KERNEL(kernels::truncated_normal_cuda)}},
    {&randint_op, {.run = BRRR_CUDA_KERNEL(kernels::randint_cuda)}},
    {&bernoulli_op, {.run = BRRR_CUDA_KERNEL(kernels::bernoulli_cuda)}},
    {&permutation_op,
     {.run = BRRR_CUDA_KERNEL(kernels::permutation_cuda),
      .workspace = kernels::permutation_cuda_workspace}},
    {&sum_op,
     {.run = BRRR_CUDA_KERNEL(kernels::sum_cuda), .workspace = kernels::reduce_cuda_workspace}},
    {&mean_op,
     {.run = BRRR_CUDA_KERNEL(kernels::mean_cuda), .workspace = kernels::reduce_cuda_workspace}},
    {&max_op,
     {.run = BRRR_CUDA_KERNEL(kernels::max_cuda), .workspace = kernels::reduce_cuda_workspace}},
    {&min_op,
     {.run = BRRR_CUDA_KERNEL(kernels::min_cuda), .workspace = kernels::reduce_cuda_workspace}},
    {&argmax_op, {.run = BRRR_CUDA_KERNEL(kernels::argmax_cuda)}},
    {&argmin_op, {.run = BRRR_CUDA_KERNEL(kernels::argmin_cuda)}},
    {&cumsum_op, {.run = BRRR_CUDA_KERNEL(kernels::cumsum_cuda)}},
    {&prod_op,
     {.run = BRRR_CUDA_KERNEL(kernels::prod_cuda), .workspace = kernels::reduce_cuda_workspace}},
    {&rms_norm_op, {.run = BRRR_CUDA_KERNEL(kernels::rms_norm_cuda)}},
    {&rope_table_op, {.run = BRRR_CUDA_KERNEL(kernels::rope_table_cuda)}},
    {&rope_op, {.run = BRRR_CUDA_KERNEL(kernels::rope_cuda), .strided_outputs = 0b1}},
    {&softmax_op, {.run = BRRR_CUDA_KERNEL(kernels::softmax_cuda)}},
    {&softmax_backward_op, {.run = BRRR_CUDA_KERNEL(kernels::softmax_backward_cuda)}},
    {&log_softmax_backward_op, {.run = BRRR_CUDA_KERNEL(kernels::log_softmax_backward_cuda)}},
    {&sort_op,
     {.run = BRRR_CUDA_KERNEL(kernels::sort_cuda), .workspace = kernels::sort_cuda_workspace}},
    {&topk_op,
     {.run = BRRR_CUDA_KERNEL(kernels::sort_cuda), .workspace = kernels::sort_cuda_workspace}},
    {&update_view_op, {.run = BRRR_CUDA_KERNEL(kernels::update_view_cuda)}},
    {&tril_op, {.run = BRRR_CUDA_KERNEL(kernels::tril_cuda)}},
    {&triu_op, {.run = BRRR_CUDA_KERNEL(kernels::triu_cuda)}},
    {&update_slice_op, {.run = BRRR_CUDA_KERNEL(kernels::update_slice_cuda)}}};

constexpr CudaKernel kElementwise{.run = BRRR_CUDA_KERNEL(kernels::run_elementwise_cuda)};

class Table {
 public:
  Table() {
    for (const Row& row : kRows) kernels_.emplace(row.op, row.kernel);
  }
  const CudaKernel* find(const OpDef& op) const {
    const std::shared_lock lock(mutex_);
    if (const auto row = kernels_.find(&op); row != kernels_.end()) return &row->second;
    return op.expression ? &kElementwise : nullptr;
  }
  void add(const OpDef& op, const CudaKernel& kernel) {
    const std::unique_lock lock(mutex_);
    const bool is_new = kernels_.emplace(&op, kernel).second;
    check(is_new, op.name, ": has a CUDA kernel already; register one per op");
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const OpDef*, CudaKernel> kernels_;  // rows stay where they are
};

Table& table() {
  static Table all;
  return all;
}

}  // namespace

const CudaKernel* find_cuda_kernel(const OpDef& op) { return table().find(op); }
void register_cuda_kernel(const OpDef& op, const CudaKernel& kernel) { table().add(op, kernel); }

int64_t cuda_workspace_bytes(const OpDef& op, std::span<const Operand> inputs,
                             std::span<const Operand> outputs, const Attrs& attrs,
                             const Chip& chip) {
  const CudaKernel* const kernel = find_cuda_kernel(op);
  if (!kernel || !kernel->workspace) return 0;
  return kernel->workspace({op, inputs, outputs, attrs, {}, nullptr, chip});
}

}  // namespace brrr
