#include <fmt/format.h>

#include <memory>

#include "brrr/cli/bench/bench_kernels.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"

namespace brrr::cli {
namespace {

const Device kGpu = Device::cuda(0);

struct RowSize {
  int64_t rows, cols;
};

// A compiled program of tensors, which it reads in place.
KernelWork program_work(const std::string& name, std::function<Tensors(std::span<const Tensor>)> fn,
                        const std::vector<Tensor>& inputs, double bytes) {
  compiler::PipelineOptions options;
  options.device = kGpu;
  const auto program = std::make_shared<runtime::CompiledFunction>(std::move(fn), options);
  return {name, [program, inputs] { program->run(inputs); }, bytes, 0};
}

std::vector<KernelWork> row_works(DType dtype, const RowSize& size) {
  const Shape shape{size.rows, size.cols}, columns{size.cols};
  const std::string suffix = fmt::format(" {} {}", to_text(dtype), to_text(shape));
  const Tensor x = random_on_gpu(shape, dtype, 1), dy = random_on_gpu(shape, dtype, 2);
  const Tensor weight = random_on_gpu(columns, DType::f32, 3),
               bias = random_on_gpu(columns, DType::f32, 4);
  const Attrs eps{{"eps", 1e-5}}, of_columns{{"axes", Axes{0}}, {"keep_dims", false}};
  const Tensors layer = call_op(layer_norm_op, std::vector<Tensor>{x, weight, bias}, eps),
                rms = call_op(rms_norm_op, std::vector<Tensor>{x, weight}, eps);
  const double bytes = static_cast<double>(numel(shape) * bit_size(dtype)) / 8;
  return {op_work("layer_norm" + suffix, layer_norm_op, {x, weight, bias}, eps),
          op_work("layer_norm_backward" + suffix, layer_norm_backward_op,
                  {x, weight, layer[1], layer[2], dy}, {}),
          op_work("layer_norm_backward, added" + suffix, layer_norm_backward_op,
                  {x, weight, layer[1], layer[2], dy, x}, {}),
          op_work("rms_norm" + suffix, rms_norm_op, {x, weight}, eps),
          op_work("rms_norm_backward" + suffix, rms_norm_backward_op, {x, weight, rms[1], dy}, {}),
          op_work("softmax" + suffix, softmax_op, {x}, {}),
          op_work("softmax_backward" + suffix, softmax_backward_op, {x, dy}, {}),
          op_work("gelu_tanh" + suffix, gelu_tanh_op, {x}, {}),
          op_work("gelu_tanh_backward" + suffix, gelu_tanh_backward_op, {x, dy}, {}),
          op_work("sum of columns" + suffix, sum_op, {x}, of_columns),
          program_work(
              "sum of columns, generated" + suffix,
              [](std::span<const Tensor> in) { return Tensors{sum(cast(in[0], DType::f32), {0})}; },
              {x}, bytes),
          program_work(
              "add, and sum of its columns" + suffix,
              [](std::span<const Tensor> in) {
                const Tensor both = in[0] + in[1];
                return Tensors{both, sum(cast(both, DType::f32), {0})};
              },
              {x, dy}, 3 * bytes)};
}

std::vector<KernelWork> long_row_works(DType dtype, const RowSize& size) {
  const std::string suffix = fmt::format(" {} [{}, {}]", to_text(dtype), size.rows, size.cols);
  const Tensor logits = random_on_gpu({size.rows, size.cols}, dtype, 5),
               targets = random_ids_on_gpu({size.rows}, size.cols);
  const Tensors out = call_op(cross_entropy_op, std::vector<Tensor>{logits, targets});
  return {op_work("cross_entropy" + suffix, cross_entropy_op, {logits, targets}, {}),
          op_work("cross_entropy_backward" + suffix, cross_entropy_backward_op,
                  {logits, targets, out[1], ones({size.rows}, {.device = kGpu})}, {}),
          op_work("classifier (both)" + suffix, classifier_op,
                  {logits, targets, ones({size.rows}, {.device = kGpu})}, {}),
          op_work("softmax" + suffix, softmax_op, {logits}, {}),
          op_work("softmax_backward" + suffix, softmax_backward_op, {logits, logits}, {})};
}

// The gradient of GPT-2's table of tokens. Tokens are spread as in text, most of them few ones often: u^4 of a uniform
// u has half of its mass below 1/16.
std::vector<KernelWork> table_works(DType dtype, const RowSize& size) {
  constexpr int64_t kVocabulary = 50304;
  const Tensor dy = random_on_gpu({size.rows, size.cols}, dtype, 6),
               even = random_ids_on_gpu({size.rows}, kVocabulary);
  const Tensor uniform = cast(even, DType::f32) / static_cast<double>(kVocabulary);
  const Tensor skewed =
      cast(square(square(uniform)) * static_cast<double>(kVocabulary - 1), DType::i64);
  const std::string suffix = fmt::format(" {} [{}, {}]", to_text(dtype), size.rows, size.cols);
  const Attrs rows{{"rows", kVocabulary}};
  return {op_work("embedding_grad, even ids" + suffix, embedding_grad_op, {dy, even}, rows),
          op_work("embedding_grad, skewed ids" + suffix, embedding_grad_op, {dy, skewed}, rows)};
}

// The parameters of GPT-2 124M: 148 tensors.
std::vector<Shape> gpt2_shapes() {
  std::vector<Shape> shapes{{50304, 768}, {1024, 768}, {768}, {768}};
  for (int layer = 0; layer < 12; ++layer) {
    for (const Shape& shape :
         {Shape{768}, Shape{768}, Shape{2304, 768}, Shape{2304}, Shape{768, 768}, Shape{768},
          Shape{768}, Shape{768}, Shape{3072, 768}, Shape{3072}, Shape{768, 3072}, Shape{768}})
      shapes.push_back(shape);
  }
  return shapes;
}

std::vector<KernelWork> update_works() {
  std::vector<NamedTensor> parameters;
  std::vector<Tensor> grads;
  double count = 0;
  for (const Shape& shape : gpt2_shapes()) {
    const auto draw = static_cast<uint32_t>(grads.size());
    parameters.push_back({join_text("p", draw), random_on_gpu(shape, DType::f32, draw)});
    grads.push_back(random_on_gpu(shape, DType::f32, 1000 + draw));
    count += static_cast<double>(numel(shape));
  }
  const auto optimizer = std::make_shared<AdamW>(parameters);
  const std::string suffix = fmt::format(" f32, {} tensors of GPT-2", grads.size());
  // Weight, gradient and two moments are read, three of them written: 28 bytes a parameter.
  return {program_work(
              "AdamW" + suffix,
              [optimizer](std::span<const Tensor> in) {
                optimizer->update({in.begin(), in.end()}, 1e-4);
                return Tensors{};
              },
              grads, 28 * count),
          program_work(
              "norm of gradients" + suffix,
              [](std::span<const Tensor> in) {
                return Tensors{global_norm({in.begin(), in.end()})};
              },
              grads, 4 * count)};
}

}  // namespace

std::vector<KernelGroup> memory_bound_groups() {
  std::vector<KernelGroup> groups;
  for (DType dtype : {DType::bf16, DType::f32}) {
    for (const RowSize& size : {RowSize{65536, 768}, RowSize{65536, 1024}, RowSize{16384, 4096}})
      groups.push_back({"rows", [dtype, size] { return row_works(dtype, size); }, 20});
    groups.push_back({"tables", [dtype] { return table_works(dtype, {65536, 768}); }, 20});
    groups.push_back({"long-rows", [dtype] { return long_row_works(dtype, {8192, 50304}); }, 10});
  }
  groups.push_back({"update", update_works, 10});
  return groups;
}

}  // namespace brrr::cli
