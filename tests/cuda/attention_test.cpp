// Attention on tensor cores beside the cpu: every head size, every rule of visibility, sizes that are no
// multiple of a tile, heads that share keys, and operands that are views of one projection.
#include "brrr/ops/attention/attention.h"

#include <cmath>

#include "brrr/autodiff/grad.h"
#include "brrr/kernels/cuda/attention/attention_cuda.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "cuda/gpu.h"
#include "support/h200.h"

namespace brrr {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

struct AttentionCase {
  std::string name;
  int64_t batch, heads, kv_heads, queries, keys, dim;
  DType dtype = DType::bf16;
  AttentionOptions options = {};
};

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = cast(to(got, Device::cpu()), DType::f64), b = cast(expected, DType::f64);
  const double norm = std::sqrt(sum(square(b)).item<double>());
  return std::sqrt(sum(square(a - b)).item<double>()) / (norm == 0 ? 1 : norm);
}

Tensor random(const Shape& shape, uint32_t draw, DType dtype) {
  return cast(normal(shape, RandomKey{.seed = 11, .stream = 2, .draw = draw}), dtype);
}

AttentionOptions on_gpu(AttentionOptions options) {
  if (options.documents.defined()) options.documents = to(options.documents, kGpu);
  if (options.lengths.defined()) options.lengths = to(options.lengths, kGpu);
  return options;
}

class CudaAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(CudaAttention, IsThatOfTheCpu) {
  BRRR_NEEDS_GPU();
  const AttentionCase& c = GetParam();
  const Shape q_shape{c.batch, c.heads, c.queries, c.dim},
      kv_shape{c.batch, c.kv_heads, c.keys, c.dim};
  Tensors cpu{random(q_shape, 1, c.dtype), random(kv_shape, 2, c.dtype),
              random(kv_shape, 3, c.dtype)};
  const Tensor weight = random(q_shape, 4, c.dtype);
  Tensors gpu;
  for (Tensor& x : cpu) {
    gpu.push_back(to(x, kGpu));
    gpu[gpu.size() - 1].require_grad();
    x.require_grad();
  }
  const AttentionResult expected = attention_with_logsumexp(cpu[0], cpu[1], cpu[2], c.options);
  const AttentionResult got = attention_with_logsumexp(gpu[0], gpu[1], gpu[2], on_gpu(c.options));
  // P is rounded to 8 (11) bits before it meets V, and so is every result.
  const double tolerance = c.dtype == DType::bf16 ? 8e-3 : 2e-3;
  EXPECT_LT(relative_error(got.out.detach(), expected.out.detach()), tolerance);
  const auto finite = [](const Tensor& x) { return where(isfinite(x), x, 0.0); };
  EXPECT_LT(relative_error(finite(got.logsumexp.detach()), finite(expected.logsumexp.detach())),
            1e-4);
  const std::vector<Tensor> cpu_grads =
      grad(sum(cast(expected.out * weight, DType::f32)), {cpu[0], cpu[1], cpu[2]});
  const std::vector<Tensor> gpu_grads =
      grad(sum(cast(got.out * to(weight, kGpu), DType::f32)), {gpu[0], gpu[1], gpu[2]});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT(relative_error(gpu_grads[i], cpu_grads[i]), 2 * tolerance)
        << "gradient of input " << i;
}

Tensor documents_of(int64_t batch, int64_t length) {
  const Tensor ids = empty({batch, length}, DType::i64);
  for (int64_t i = 0; i < ids.numel(); ++i) ids.data<int64_t>()[i] = (i * 7 / 300 + i / length) % 5;
  return ids;
}

// Enough heads of 64 for one kernel to make all gradients (attention_mma_fused_grad_cuda.cu): more of them than
// multiprocessors, blocks of keys with one tile and with none, tiles in two blocks that follow each other.
void add_many_heads(std::vector<AttentionCase>& all) {
  const AttentionOptions causal{.causal = true};
  all.push_back({"many_full", 12, 4, 4, 130, 200, 64});
  all.push_back({"many_causal", 24, 6, 6, 333, 333, 64, DType::bf16, causal});
  all.push_back({"many_even", 12, 4, 4, 512, 512, 64, DType::bf16, causal});
  all.push_back({"many_f16", 12, 4, 4, 256, 256, 64, DType::f16, causal});
  all.push_back({"many_short", 25, 2, 2, 20, 20, 64, DType::bf16, causal});
  all.push_back({"many_shared", 24, 6, 2, 200, 200, 64, DType::bf16, causal});
  all.push_back({"many_windows", 12, 4, 4, 300, 300, 64, DType::bf16, {.window = 70}});
  all.push_back({"many_narrow_windows", 12, 4, 4, 300, 300, 64, DType::bf16, {.window = 2}});
  all.push_back({"many_continued", 12, 4, 4, 40, 500, 64, DType::bf16, causal});
  all.push_back({"many_more_queries_than_keys", 12, 4, 4, 300, 100, 64, DType::bf16, causal});
  AttentionOptions options{.causal = true, .documents = documents_of(24, 300)};
  all.push_back({"many_documents", 24, 4, 2, 300, 300, 64, DType::bf16, options});
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 24; ++i) lengths.push_back(i * 71 % 300);
  options = {.causal = true, .lengths = from_values(lengths, {24})};
  all.push_back({"many_lengths", 24, 4, 2, 150, 300, 64, DType::bf16, options});
  options.causal = false;
  all.push_back({"many_full_lengths", 24, 4, 2, 150, 300, 64, DType::bf16, options});
}

// Every rule of visibility for one size of heads, in both types. Lengths are no multiples of a tile (16 to 64 keys or
// queries) nor of a block (64 or 128 rows), and most cases have several of both.
void add_head_size(std::vector<AttentionCase>& all, int64_t dim) {
  const std::string size = "D" + std::to_string(dim);
  const AttentionOptions causal{.causal = true},
      documents{.causal = true, .documents = documents_of(2, 300)},
      lengths{.causal = true, .lengths = from_values(std::vector<int64_t>{256, 0, 77}, {3})},
      full_lengths{.lengths = from_values(std::vector<int64_t>{131, 200, 1}, {3})};
  all.push_back({size + "_full", 2, 2, 2, 130, 200, dim});
  all.push_back({size + "_causal", 1, 3, 3, 333, 333, dim, DType::bf16, causal});
  all.push_back({size + "_shared_keys", 2, 6, 2, 128, 128, dim, DType::bf16, causal});
  all.push_back({size + "_window", 1, 2, 1, 300, 300, dim, DType::bf16, {.window = 70}});
  all.push_back({size + "_continued", 1, 2, 2, 40, 500, dim, DType::bf16, causal});
  all.push_back({size + "_more_queries_than_keys", 1, 2, 2, 200, 100, dim, DType::bf16, causal});
  all.push_back({size + "_documents", 2, 2, 1, 300, 300, dim, DType::bf16, documents});
  all.push_back({size + "_lengths", 3, 2, 1, 20, 256, dim, DType::bf16, lengths});
  all.push_back(
      {size + "_soft_cap", 1, 2, 1, 200, 200, dim, DType::bf16, {.causal = true, .soft_cap = 2}});
  all.push_back({size + "_one_query", 4, 4, 4, 1, 513, dim, DType::bf16, causal});
  all.push_back({size + "_f16", 1, 2, 2, 150, 150, dim, DType::f16, causal});
  all.push_back({size + "_f16_full", 1, 2, 1, 90, 170, dim, DType::f16});
  all.push_back({size + "_f16_window", 1, 4, 2, 161, 161, dim, DType::f16, {.window = 33}});
  all.push_back({size + "_f16_documents", 2, 2, 1, 300, 300, dim, DType::f16, documents});
  all.push_back({size + "_f16_lengths", 3, 2, 1, 77, 200, dim, DType::f16, full_lengths});
}

// Few enough for memory and race checks (tools/gpu_check.sh): every kernel of its own, each with several tiles.
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> all;
  add_many_heads(all);
  const AttentionOptions causal{.causal = true};
  for (int64_t dim : {32, 64, 80, 128, 192, 256}) {
    const std::string size = "D" + std::to_string(dim);
    all.push_back({size + "_full", 2, 2, 2, 130, 200, dim});
    all.push_back({size + "_causal", 1, 3, 3, 333, 333, dim, DType::bf16, causal});
    all.push_back({size + "_shared_keys", 2, 6, 2, 128, 128, dim, DType::bf16, causal});
    all.push_back({size + "_window", 1, 2, 1, 300, 300, dim, DType::bf16, {.window = 70}});
    all.push_back({size + "_f16", 1, 2, 2, 150, 150, dim, DType::f16, causal});
  }
  return all;
}

std::vector<AttentionCase> cases_of_all_sizes() {
  std::vector<AttentionCase> all;
  for (int64_t dim : {32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256})
    add_head_size(all, dim);
  // Whole chunks of 16 bytes that are not whole steps of 16 columns; and heads that tensor cores do not take.
  for (int64_t dim : {8, 16, 24, 40, 56, 72, 88, 104, 120, 136, 168, 184, 200, 248, 20, 100}) {
    const std::string size = "D" + std::to_string(dim);
    all.push_back({size + "_causal", 1, 4, 2, 141, 141, dim, DType::bf16, {.causal = true}});
    all.push_back({size + "_f16_full", 1, 2, 2, 70, 150, dim, DType::f16});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<AttentionCase>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(Cases, CudaAttention, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(AllSizes, CudaAttention, testing::ValuesIn(cases_of_all_sizes()), name_of);

TEST(CudaAttentionLayouts, ViewsOfOneProjectionAreNotCopied) {
  BRRR_NEEDS_GPU();
  const int64_t batch = 2, length = 150, heads = 3;
  for (const int64_t dim : {64, 80, 192, 256}) {
    const Tensor projection = random({batch, length, 3, heads, dim}, 9, DType::bf16);
    const auto part = [&](const Tensor& x, int64_t i) { return transpose(select(x, 2, i), 1, 2); };
    const Tensor there = to(projection, kGpu);
    const Tensor got = attention(part(there, 0), part(there, 1), part(there, 2), {.causal = true});
    const Tensor expected =
        attention(part(projection, 0), part(projection, 1), part(projection, 2), {.causal = true});
    EXPECT_LT(relative_error(got, expected), 8e-3) << dim;
  }
}

#if BRRR_HAS_CUDA

// ---- Which kernels serve a size. Values alone would not tell: plain arithmetic gives them too.

const Attrs kCausal{{"scale", 0.1}, {"causal", true}, {"window", int64_t{0}}, {"soft_cap", 0.0}};

bool do_tensor_cores_take(const OpDef& op, DType dtype, int64_t dim, uintptr_t address,
                          int64_t result_gap = 0) {
  const Layout heads = contiguous_layout({2, 2, 40, dim}), rows = contiguous_layout({2, 2, 40});
  std::byte* const base = reinterpret_cast<std::byte*>(address);
  const Operand head{base, &heads, dtype}, row{base, &rows, DType::f32};
  Layout apart = heads;  // rows of the results
  apart.strides = {80 * (dim + result_gap), 40 * (dim + result_gap), dim + result_gap, 1};
  const Operand result{base, &apart, dtype};
  std::vector<Operand> inputs{head, head, head}, outputs{result, row};
  if (&op == &attention_backward_op) {
    inputs.insert(inputs.end(), {head, row, head, row});
    outputs = {result, result, result};
  }
  return kernels::is_mma_attention({op, inputs, outputs, kCausal, {}, nullptr, h200().chip});
}

TEST(CudaAttentionDispatch, TensorCoresTakeWholeChunksUpTo256) {
  constexpr uintptr_t kAligned = 4096;
  for (const OpDef* op : {&attention_op, &attention_backward_op}) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      for (int64_t dim = 8; dim <= 256; dim += 8)
        EXPECT_TRUE(do_tensor_cores_take(*op, dtype, dim, kAligned)) << op->name << " " << dim;
      for (int64_t dim : {1, 4, 20, 100, 250, 264, 512})
        EXPECT_FALSE(do_tensor_cores_take(*op, dtype, dim, kAligned)) << op->name << " " << dim;
      EXPECT_FALSE(do_tensor_cores_take(*op, dtype, 96, kAligned + 8)) << "no 16-byte loads";
      EXPECT_TRUE(do_tensor_cores_take(*op, dtype, 96, kAligned, 8)) << "rows apart";
      EXPECT_FALSE(do_tensor_cores_take(*op, dtype, 96, kAligned, 4)) << "no 16-byte stores";
    }
    EXPECT_FALSE(do_tensor_cores_take(*op, DType::f32, 96, kAligned));
  }
}

#endif

}  // namespace
}  // namespace brrr
