#include "brrr/cli/napkin/run_options.h"

#include "brrr/plan/cluster/planned_optimizer.h"

namespace brrr::cli {

void add_run_options(CLI::App& command, RunOptions& options) {
  add_model_choice(command, options.model, true);
  add_gpu_choice(command, options.gpu);
  plan::RunQuestion& q = options.base;
  command
      .add_option("--seq", q.seq,
                  "Tokens of a sequence; the model's context, 8192 at most, by default")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  command.add_option("--global-batch", q.global_batch, "Sequences of a step, all devices together")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  command.add_option("--micro-batch", q.micro_batch, "Sequences that a device runs at once")
      ->capture_default_str();
  command.add_option("--precision", options.precision, "f32, bf16, f16 or fp8")
      ->capture_default_str();
  command.add_option("--optimizer", q.optimizer, plan::planned_optimizer_names())
      ->capture_default_str();
  command.add_option("--grads", options.grads, "Gradients of mixed precision: bf16 or f32")
      ->capture_default_str();
  command
      .add_option("--recompute", options.recompute,
                  "none, selective, full or budget; auto: as `brrr train` does, selective, and "
                  "none for other "
                  "systems")
      ->capture_default_str();
  command.add_flag(
      "--unfused", options.unfused,
      "Price a system that launches elementwise ops one by one, as eager frameworks do");
  command
      .add_option("--framework", options.framework,
                  "What runs the model: brrr, another tuned system, or PyTorch as compiled or "
                  "eager, with its loss in "
                  "f32, copies of sharded parameters and, eager, ops one by one")
      ->capture_default_str();
  command
      .add_option(
          "--attention", options.attention,
          "Kernels of the system: current, flash2 (FlashAttention-2 on any device), unfused, "
          "or triton (FlashAttention of 2022)")
      ->capture_default_str();
  command
      .add_option("--convention", options.convention,
                  "How FLOPs are counted: exact, 6n, palm, nanogpt, torchtitan, megatron, llmc")
      ->capture_default_str();
  command.add_option("--tp", q.layout.tp, "Tensor-parallel devices")->capture_default_str();
  command.add_option("--pp", q.layout.pp, "Pipeline stages")->capture_default_str();
  command.add_option("--cp", q.layout.cp, "Context-parallel devices")->capture_default_str();
  command.add_option("--ep", q.layout.ep, "Devices that experts lie over")->capture_default_str();
  command.add_option("--zero", q.layout.zero, "ZeRO stage, 0 to 3")->capture_default_str();
  command.add_option("--interleave", q.layout.interleave, "Virtual pipeline stages of a device")
      ->capture_default_str();
  command.add_flag("--no-sequence-parallel", options.no_sequence_parallel,
                   "Tensor parallelism without splitting norms and residuals along the sequence");
  command.add_option("--peak", options.peak_tflops,
                     "Dense TFLOP/s of a device, in place of the table's");
  command.add_option("--price", q.price_per_hour, "Dollars for an hour of one device");
  command.add_option("--watts", q.watts, "Of one device; the board's limit by default");
  command.add_option("--pue", q.pue, "Power of the building over that of the devices")
      ->capture_default_str();
  command.add_option("--goodput", q.goodput, "Share of the time in which steps are made")
      ->capture_default_str();
  command.add_option("--node-size", q.node_size, "Devices that share fast links")
      ->capture_default_str();
  command.add_option("--network", q.network_gb_s, "GB/s of one device to other nodes, one way");
}

plan::RunQuestion RunOptions::without_model() const {
  plan::RunQuestion q = base;
  q.gpu = chosen_gpu(gpu);
  check_run_sizes(*this);
  q.count = gpu.count;
  q.tokens = tokens;
  q.mfu = mfu;
  q.peak_tflops = peak_tflops;
  q.precision = compiler::parse_precision(precision);
  q.convention = plan::parse_convention(convention);
  q.layout.sequence_parallel = !no_sequence_parallel;
  q.system.fuse = !unfused;
  q.system.framework = plan::parse_framework(framework);
  const bool is_own = q.system.framework == plan::Framework::brrr && q.system.fuse;
  q.recompute = recompute != "auto" ? compiler::parse_policy(recompute)
                : is_own            ? compiler::RematPolicy::selective
                                    : compiler::RematPolicy::none;
  q.system.attention = plan::parse_attention_kernel(attention);
  check(grads == "bf16" || grads == "f32", "--grads ", grads, ": use bf16 or f32");
  q.grads = grads == "f32" ? plan::GradType::f32 : plan::GradType::as_parameter;
  return q;
}

plan::RunQuestion RunOptions::question() const {
  plan::RunQuestion q = without_model();
  set_model(q, model);
  if (!q.model && recompute == "auto") q.recompute = compiler::RematPolicy::none;
  return q;
}

}  // namespace brrr::cli
