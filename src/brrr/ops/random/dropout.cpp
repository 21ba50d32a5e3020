#include "brrr/ops/random/dropout.h"

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cpu/random/random_cpu.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"

namespace brrr {
namespace {

TensorTypes infer_dropout(const InferCall& call) {
  const double p = call.attrs.number("p");
  check(p >= 0 && p <= 1, "dropout: p = ", p, " must be a probability, 0 to 1");
  require_key(call, 1);
  return infer_same(call);
}

Tensors dropout_compose(const ComposeCall& call) {
  const Tensor& x = call.input(0);
  const double p = call.attrs.number("p");
  const Tensor u =
      uniform(x.shape(), call.input(1), {}, {.dtype = DType::f64, .device = x.device()});
  return {where(u >= p, x * (1 / (1 - p)), 0)};
}

// x: any layout.  y: [i] of the flat index, whose bits are those of element i of any random tensor.
template <typename T>
void drop_tile(const T* x, const uint64_t* bits, int64_t count, uint64_t threshold, T scale, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = bits[i] >> 11 >= threshold ? x[i] * scale : T(0);
}

void dropout_cpu(const KernelCall& call) {
  const Operand &x = call.input(0), &y = call.output(0);
  const Layout* layout = x.layout;
  const kernels::LoopNest nest = kernels::make_nest(x.shape(), {&layout, 1});
  const RandomKey key = kernels::read_key(call.input(1));
  const double p = call.attrs.number("p");
  const uint64_t threshold = kernels::probability_threshold(p);
  const ComputeType type = compute_type(y.dtype);
  const auto run_tile = [&]<typename T>(int64_t begin, int64_t count) {
    uint64_t bits[kTileElements];
    T values[kTileElements];
    kernels::fill_random_bits(key, begin, count, bits);
    T* next = values;
    kernels::for_each_run(nest, 0, begin, count,
                          [&](int64_t position, int64_t run, int64_t stride) {
                            kernels::load_elements(x.dtype, x.base, layout->offset + position,
                                                   stride, run, type, next);
                            next += run;
                          });
    drop_tile(values, bits, count, threshold, static_cast<T>(1 / (1 - p)), values);
    kernels::store_elements(type, values, y.dtype, y.base, y.layout->offset + begin, 1, count);
  };
  const int64_t elements = y.count();
  call.pool.for_each_piece(
      (elements + kernels::kPieceElements - 1) / kernels::kPieceElements, [&](int64_t piece) {
        const int64_t end = std::min(elements, (piece + 1) * kernels::kPieceElements);
        for (int64_t tile = piece * kernels::kPieceElements; tile < end; tile += kTileElements) {
          const int64_t count = std::min(kTileElements, end - tile);
          if (type == ComputeType::f64) {
            run_tile.template operator()<double>(tile, count);
          } else {
            run_tile.template operator()<float>(tile, count);
          }
        }
      });
}

std::vector<Sample> dropout_samples() {
  std::vector<Sample> samples;
  uint32_t seed = 150;
  for (const Shape& shape : elementwise_shapes()) {
    samples.push_back({{sample_values(shape, seed), key_tensor({.seed = seed})}, {{"p", 0.3}}});
    ++seed;
  }
  for (double p : {0.0, 1.0})
    samples.push_back({{sample_values({4, 5}, seed), key_tensor({.seed = 1})}, {{"p", p}}});
  return samples;
}

}  // namespace

const OpDef dropout_op{.name = "dropout",
                       .formula = "x / (1 - p) where uniform(key) >= p, else 0",
                       .kind = OpKind::random,
                       .infer = infer_dropout,
                       .grad = [](const GradCall& call) -> Tensors {
                         const Tensor &key = call.input(1), &dy = call.output_grad(0);
                         return {call_one(dropout_op, {dy, key}, call.attrs), Tensor()};
                       },
                       .grad_reads = {.inputs = 0b10},
                       .compose = dropout_compose,
                       .cpu = dropout_cpu,
                       .samples = dropout_samples};

Tensor dropout(const Tensor& x, double p, const KeyArg& key) {
  return call_one(dropout_op, {x, key.on(x.device())}, {{"p", p}});
}

}  // namespace brrr
