// The 8-bit kernels of a layer of GPT-2 124M with 64 x 1024 tokens: its operands, and the three products of training.
#include "brrr/cli/bench/bench_kernels.h"
#include "brrr/graph/call.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/matmul/fp8.h"
#include "brrr/ops/view/views.h"

namespace brrr::cli {
namespace {

const Device kGpu = Device::cuda(0);

// A call with what it costs as one kernel: on other devices it is its composition.
KernelWork kernel_work(const std::string& name, const OpDef& op, const std::vector<Tensor>& inputs,
                       const Attrs& attrs) {
  std::vector<TypeRef> types;
  for (const Tensor& x : inputs) types.push_back({&x.shape(), x.dtype(), false});
  const InferCall call{op, types, attrs};
  const TensorTypes outputs = op.infer(call);
  const Cost cost = cost_of({call, {outputs.begin(), outputs.end()}});
  return {name, [&op, inputs, attrs] { call_op(op, inputs, attrs); },
          static_cast<double>(cost.bytes_read + cost.bytes_written),
          static_cast<double>(cost.flops)};
}

Tensor one() { return full({}, 1, {.dtype = DType::f32, .device = kGpu}); }

Attrs quantize_attrs(DType dtype, int64_t columns, bool turned) {
  return {
      {"dtype", dtype}, {"columns", columns}, {"plain", true}, {"turned", turned}, {"amax", true}};
}

// As it lies, and transposed.
Tensors both(const Tensor& x, DType dtype) {
  return call_op(quantize_op, std::vector<Tensor>{x, one()},
                 quantize_attrs(dtype, x.dim(-1), true));
}

}  // namespace

std::vector<KernelWork> fp8_works() {
  constexpr int64_t kRows = 65536, kIn = 768, kOut = 3072;
  const DType e4m3 = DType::f8e4m3, e5m2 = DType::f8e5m2;
  const Tensor dy = random_on_gpu({kRows, kOut}, DType::bf16, 20);
  const Tensors x = both(random_on_gpu({kRows, kIn}, DType::bf16, 21), e4m3),
                w = both(random_on_gpu({kOut, kIn}, DType::f32, 22), e4m3), dy8 = both(dy, e5m2);
  const Tensor bias = random_on_gpu({kOut}, DType::bf16, 23);
  const auto product = [](const std::string& name, const Tensor& a, const Tensor& b, DType dtype,
                          const std::vector<Tensor>& more = {}) {
    std::vector<Tensor> inputs{a, b, one(), one()};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return kernel_work(name, matmul_scaled_op, inputs, {{"dtype", dtype}});
  };
  return {kernel_work("quantize bf16 to e4m3 [65536, 3072]", quantize_op, {dy, one()},
                      quantize_attrs(e4m3, kOut, false)),
          kernel_work("quantize bf16 to e5m2, transposed too [65536, 3072]", quantize_op,
                      {dy, one()}, quantize_attrs(e5m2, kOut, true)),
          product("fp8 x W^T + b, k 768", x[0], transpose(w[0]), DType::bf16, {bias}),
          product("fp8 dy W, k 3072", dy8[0], transpose(w[1]), DType::bf16),
          product("fp8 dy^T x, k 65536", dy8[1], transpose(x[1]), DType::f32)};
}

}  // namespace brrr::cli
