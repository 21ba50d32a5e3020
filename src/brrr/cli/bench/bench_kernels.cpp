// brrr bench kernels: hand-written and generated kernels of a GPU, each at a size that fills it, beside the
// bandwidth of a copy and the rate of a product.
#include "brrr/cli/bench/bench_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/cli/bench/bench.h"
#include "brrr/cli/device_option.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/gpu_info.h"
#include "brrr/graph/call.h"
#include "brrr/hardware/measure_cuda.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/random/sample_tokens.h"
#include "brrr/report/table.h"

namespace brrr::cli {
namespace {

const Device kGpu = Device::cuda(0);

struct Measured {
  std::string name;
  double seconds, bytes, flops;
};

std::vector<KernelWork> embedding_works() {
  const Tensor ids = random_ids_on_gpu({65536}, 50304),
               dy = random_on_gpu({65536, 768}, DType::bf16, 6);
  return {op_work("embedding_grad bf16 65536 ids, [50304, 768]", embedding_grad_op, {dy, ids},
                  {{"rows", int64_t{50304}}})};
}

struct AttentionSize {
  int64_t batch, heads, length, dim;
};

std::vector<KernelWork> attention_works(const AttentionSize& size) {
  const auto [b, h, t, d] = size;
  const std::string name = fmt::format(" bf16 causal B{} H{} T{} D{}", b, h, t, d);
  const Shape shape{b, h, t, d};
  const Tensor q = random_on_gpu(shape, DType::bf16, 10), k = random_on_gpu(shape, DType::bf16, 11),
               v = random_on_gpu(shape, DType::bf16, 12),
               dout = random_on_gpu(shape, DType::bf16, 13);
  const Attrs attrs{{"scale", 1 / std::sqrt(static_cast<double>(d))},
                    {"causal", true},
                    {"window", int64_t{0}},
                    {"soft_cap", 0.0}};
  const Tensors out = call_op(attention_op, std::vector<Tensor>{q, k, v}, attrs);
  return {op_work("attention" + name, attention_op, {q, k, v}, attrs),
          op_work("attention_backward" + name, attention_backward_op,
                  {q, k, v, out[0], out[1], dout, zeros({b, h, t}, {.device = kGpu})}, attrs)};
}

// One token of each row, with every way to cut; a few microseconds, which is launching and meeting, not bytes.
std::vector<KernelWork> draw_works(int64_t rows, int64_t vocab) {
  const Tensor logits = random_on_gpu({rows, vocab}, DType::bf16, 14) * 4.0;
  const Tensor seen =
      to(zeros({rows, vocab}, {.dtype = DType::boolean, .device = Device::cpu()}), kGpu);
  const std::vector<DrawPlace> places(static_cast<size_t>(rows));
  std::vector<KernelWork> works;
  for (const auto& [name, options] :
       {std::pair<std::string, SamplingOptions>{"greedy", {.temperature = 0}},
        {"temperature", {.temperature = 0.8}},
        {"top-k", {.temperature = 0.8, .top_k = 40}},
        {"top-p", {.temperature = 0.8, .top_p = 0.9}},
        {"all", {.temperature = 0.8, .top_k = 40, .top_p = 0.9, .repetition_penalty = 1.2}}}) {
    Tensors inputs{logits, to(draw_settings(options), kGpu), to(draw_keys(options, places), kGpu)};
    if (options.repetition_penalty != 1) inputs.push_back(seen);
    works.push_back(op_work(fmt::format("draw_tokens bf16 [{}, {}], {}", rows, vocab, name),
                            draw_tokens_op, inputs, {}));
  }
  return works;
}

std::vector<KernelGroup> all_groups() {
  std::vector<KernelGroup> groups = memory_bound_groups();
  groups.push_back({"embedding", embedding_works, 10});
  for (const AttentionSize& size :
       {AttentionSize{64, 12, 1024, 64}, AttentionSize{16, 25, 1024, 64},
        AttentionSize{8, 16, 4096, 128}, AttentionSize{4, 16, 2048, 80},
        AttentionSize{4, 16, 2048, 96}, AttentionSize{4, 16, 2048, 128},
        AttentionSize{4, 16, 2048, 192}, AttentionSize{4, 16, 2048, 256}})
    groups.push_back({"attention", [size] { return attention_works(size); }, 10});
  for (int64_t rows : {1, 8}) {
    for (int64_t vocab : {50257, 151936})
      groups.push_back({"draws", [rows, vocab] { return draw_works(rows, vocab); }, 200});
  }
  if (kernels::has_f8_products(cuda::device_facts(0))) groups.push_back({"fp8", fp8_works, 10});
  return groups;
}

Measured measure(const KernelWork& work, int calls) {
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
  return {work.name, seconds[2], work.bytes, work.flops};
}

struct KernelOptions {
  std::vector<std::string> only;  // groups; all where there are none
  bool json = false;
  std::string out;  // a file for the JSON too
  DeviceOption device;
};

nlohmann::json json_of(const std::vector<Measured>& rows, const std::string& gpu, double copy) {
  nlohmann::json result{{"gpu", gpu}, {"copy_bytes_per_second", copy}};
  for (const Measured& row : rows)
    result["kernels"].push_back({{"name", row.name},
                                 {"seconds", row.seconds},
                                 {"bytes", row.bytes},
                                 {"flops", row.flops},
                                 {"bytes_per_second", row.bytes / row.seconds},
                                 {"of_copy", row.bytes / row.seconds / copy}});
  return result;
}

report::Table table_of(const std::vector<Measured>& rows, const std::string& gpu, double copy) {
  report::Table table({"kernel", "ms", "GB/s", "of copy", "TFLOP/s"},
                      fmt::format("{}, a copy moves {:.0f} GB/s", gpu, copy / 1e9));
  for (const Measured& row : rows)
    table.row(row.name, fmt::format("{:.4f}", 1e3 * row.seconds),
              fmt::format("{:.0f}", row.bytes / row.seconds / 1e9),
              fmt::format("{:.2f}", row.bytes / row.seconds / copy),
              fmt::format("{:.1f}", row.flops / row.seconds / 1e12));
  return table;
}

void run_kernels(const KernelOptions& options) {
  const GpuList list = list_gpus();
  check(!list.gpus.empty(), "bench kernels: there is no GPU: ", list.reason);
  const Device device = options.device.device();
  check(device == kGpu, "bench kernels: ", device, " is not the first GPU; use --device cuda");
  NoGrad no_tape;
  const double copy = hardware::measure_gpu_memory(0).copy.value();
  std::vector<Measured> rows;
  for (const KernelGroup& group : all_groups()) {
    const bool is_wanted =
        options.only.empty() ||
        std::find(options.only.begin(), options.only.end(), group.name) != options.only.end();
    if (!is_wanted) continue;
    for (const KernelWork& work : group.make()) rows.push_back(measure(work, group.calls));
    cuda::wait(cuda::stream(0));
  }
  const std::string json = json_of(rows, list.gpus[0].name, copy).dump(1) + "\n";
  if (!options.out.empty()) {
    std::ofstream file(options.out);
    check(static_cast<bool>(file << json), "bench kernels: cannot write ", options.out);
  }
  const std::string text = options.json ? json : table_of(rows, list.gpus[0].name, copy).text();
  std::fputs(text.c_str(), stdout);
}

}  // namespace

Tensor random_on_gpu(const Shape& shape, DType dtype, uint32_t draw) {
  return cast(normal(shape, RandomKey{.seed = 1, .stream = 0, .draw = draw}, {},
                     {.dtype = DType::f32, .device = kGpu}),
              dtype);
}

Tensor random_ids_on_gpu(const Shape& shape, int64_t below) {
  return randint(shape, RandomKey{.seed = 2, .stream = 0, .draw = 9}, 0, below,
                 {.dtype = DType::i64, .device = kGpu});
}

KernelWork op_work(const std::string& name, const OpDef& op, const Tensors& inputs,
                   const Attrs& attrs) {
  CostCounter counter;
  {
    NoGrad no_tape;
    Tensors on_null;
    for (const Tensor& x : inputs) on_null.push_back(to(x, Device::null()));
    call_op(op, on_null, attrs);
  }
  const Cost cost = counter.total();
  return {name, [&op, inputs, attrs] { call_op(op, inputs, attrs); },
          static_cast<double>(cost.bytes_read + cost.bytes_written),
          static_cast<double>(cost.flops)};
}

void add_bench_kernels(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("kernels",
                                           "Norms, softmax, GELU, classifier, AdamW, attention, "
                                           "draws on a GPU: time, bandwidth, FLOP/s");
  const auto options = std::make_shared<KernelOptions>();
  command
      ->add_option("--only", options->only,
                   "Groups: rows, long-rows, update, embedding, attention, draws, fp8")
      ->delimiter(',')
      ->check(
          CLI::IsMember({"rows", "long-rows", "update", "embedding", "attention", "draws", "fp8"}));
  add_device_option(*command, options->device);
  command->add_flag("--json", options->json, "Print JSON");
  command->add_option("--out", options->out, "Write JSON to a file too");
  command->callback([options] { run_kernels(*options); });
}

}  // namespace brrr::cli
