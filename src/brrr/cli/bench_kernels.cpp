// brrr bench kernels: hand-written and generated kernels of a GPU, each at a size that fills it, beside the
// bandwidth of a copy and the rate of a product.
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/account/measure_cuda.h"
#include "brrr/cli/bench.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/gpu_info.h"
#include "brrr/graph/call.h"
#include "brrr/ops/attention.h"
#include "brrr/ops/copy.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random.h"
#include "brrr/ops/unary.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

const Device kGpu{.kind = DeviceKind::cuda, .index = 0};

struct Work {
  std::string name;
  std::function<void()> run;
  Cost cost;
};

struct Measured {
  std::string name;
  double seconds, bytes, flops;
};

Tensor random(const Shape& shape, DType dtype, uint32_t draw) {
  return cast(normal(shape, RandomKey{.seed = 1, .stream = 0, .draw = draw}, {},
                     {.dtype = DType::f32, .device = kGpu}),
              dtype);
}

Tensor random_ids(const Shape& shape, int64_t below) {
  return randint(shape, RandomKey{.seed = 2, .stream = 0, .draw = 9}, 0, below,
                 {.dtype = DType::i64, .device = kGpu});
}

Work op_work(const std::string& name, const OpDef& op, const Tensors& inputs, const Attrs& attrs) {
  CostCounter counter;
  {
    NoGrad no_tape;
    Tensors on_null;
    for (const Tensor& x : inputs) on_null.push_back(to(x, Device::null()));
    call_op(op, on_null, attrs);
  }
  return {name, [&op, inputs, attrs] { call_op(op, inputs, attrs); }, counter.total()};
}

void add_rows(std::vector<Work>& all, DType dtype) {
  const std::string suffix = join_text(" ", to_text(dtype), " [65536, 768]");
  const Tensor x = random({65536, 768}, dtype, 1), dy = random({65536, 768}, dtype, 2);
  const Tensor weight = random({768}, DType::f32, 3), bias = random({768}, DType::f32, 4);
  const Attrs eps{{"eps", 1e-5}};
  const Tensors forward = call_op(layer_norm_op, std::vector<Tensor>{x, weight, bias}, eps);
  all.push_back(op_work("layer_norm" + suffix, layer_norm_op, {x, weight, bias}, eps));
  all.push_back(op_work("layer_norm_backward" + suffix, layer_norm_backward_op,
                        {x, weight, forward[1], forward[2], dy}, {}));
  all.push_back(op_work("rms_norm" + suffix, rms_norm_op, {x, weight}, eps));
  all.push_back(op_work("softmax" + suffix, softmax_op, {x}, {}));
  all.push_back(op_work("softmax_backward" + suffix, softmax_backward_op, {x, dy}, {}));
  all.push_back(op_work("gelu_tanh" + suffix, gelu_tanh_op, {x}, {}));
  all.push_back(op_work("gelu_tanh_backward" + suffix, gelu_tanh_backward_op, {x, dy}, {}));
  all.push_back(
      op_work("sum of columns" + suffix, sum_op, {x}, {{"axes", Axes{0}}, {"keep_dims", false}}));
}

void add_classifier(std::vector<Work>& all) {
  constexpr int64_t kRows = 16384, kClasses = 50304;
  const Tensor logits = random({kRows, kClasses}, DType::bf16, 5),
               targets = random_ids({kRows}, kClasses);
  const Tensors out = call_op(cross_entropy_op, std::vector<Tensor>{logits, targets});
  all.push_back(
      op_work("cross_entropy bf16 [16384, 50304]", cross_entropy_op, {logits, targets}, {}));
  all.push_back(op_work("cross_entropy_backward bf16 [16384, 50304]", cross_entropy_backward_op,
                        {logits, targets, out[1], ones({kRows}, {.device = kGpu})}, {}));
  const Tensor ids = random_ids({65536}, 50304), dy = random({65536, 768}, DType::bf16, 6);
  all.push_back(op_work("embedding_grad bf16 65536 ids, [50304, 768]", embedding_grad_op, {dy, ids},
                        {{"rows", int64_t{50304}}}));
}

struct AttentionSize {
  int64_t batch, heads, length, dim;
};

void add_attention(std::vector<Work>& all, const AttentionSize& size) {
  const auto [b, h, t, d] = size;
  const std::string name = fmt::format(" bf16 causal B{} H{} T{} D{}", b, h, t, d);
  const Shape shape{b, h, t, d};
  const Tensor q = random(shape, DType::bf16, 10), k = random(shape, DType::bf16, 11),
               v = random(shape, DType::bf16, 12), dout = random(shape, DType::bf16, 13);
  const Attrs attrs{{"scale", 1 / std::sqrt(static_cast<double>(d))},
                    {"causal", true},
                    {"window", int64_t{0}},
                    {"soft_cap", 0.0}};
  const Tensors out = call_op(attention_op, std::vector<Tensor>{q, k, v}, attrs);
  all.push_back(op_work("attention" + name, attention_op, {q, k, v}, attrs));
  all.push_back(op_work("attention_backward" + name, attention_backward_op,
                        {q, k, v, out[0], out[1], dout, zeros({b, h, t}, {.device = kGpu})},
                        attrs));
}

Measured measure(const Work& work, int calls) {
  const cuda::Stream stream = cuda::stream(0);
  work.run();
  std::vector<double> seconds;
  cuda::Event begin, end;
  for (int round = 0; round < 5; ++round) {
    begin.record(stream);
    for (int i = 0; i < calls; ++i) work.run();
    end.record(stream);
    end.wait();
    seconds.push_back(cuda::seconds_between(begin, end) / calls);
  }
  std::sort(seconds.begin(), seconds.end());
  return {work.name, seconds[2],
          static_cast<double>(work.cost.bytes_read + work.cost.bytes_written),
          static_cast<double>(work.cost.flops)};
}

void run_kernels(bool json) {
  const GpuList list = list_gpus();
  check(!list.gpus.empty(), "bench kernels: there is no GPU: ", list.reason);
  NoGrad no_tape;
  const double copy = measure_gpu_memory(0).copy.value();
  std::vector<Measured> rows;
  const auto take = [&](const std::function<void(std::vector<Work>&)>& add, int calls) {
    std::vector<Work> works;
    add(works);
    for (const Work& work : works) rows.push_back(measure(work, calls));
    cuda::wait(cuda::stream(0));
  };
  for (DType dtype : {DType::f32, DType::bf16})
    take([&](std::vector<Work>& all) { add_rows(all, dtype); }, 20);
  take(add_classifier, 10);
  for (const AttentionSize& size :
       {AttentionSize{64, 12, 1024, 64}, AttentionSize{16, 25, 1024, 64},
        AttentionSize{8, 16, 4096, 128}})
    take([&](std::vector<Work>& all) { add_attention(all, size); }, 10);
  if (json) {
    nlohmann::json result{{"gpu", list.gpus[0].name}, {"copy_bytes_per_second", copy}};
    for (const Measured& row : rows)
      result["kernels"].push_back({{"name", row.name},
                                   {"seconds", row.seconds},
                                   {"bytes", row.bytes},
                                   {"flops", row.flops}});
    std::puts(result.dump(1).c_str());
    return;
  }
  Table table({"kernel", "us", "GB/s", "of copy", "TFLOP/s"},
              fmt::format("{}, a copy moves {:.0f} GB/s", list.gpus[0].name, copy / 1e9));
  for (const Measured& row : rows)
    table.row(row.name, fmt::format("{:.1f}", 1e6 * row.seconds),
              fmt::format("{:.0f}", row.bytes / row.seconds / 1e9),
              fmt::format("{:.2f}", row.bytes / row.seconds / copy),
              fmt::format("{:.1f}", row.flops / row.seconds / 1e12));
  std::fputs(table.text().c_str(), stdout);
}

}  // namespace

void add_bench_kernels(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "kernels", "Norms, softmax, classifier, attention on a GPU: time, bandwidth, FLOP/s");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] { run_kernels(*json); });
}

}  // namespace brrr::cli
