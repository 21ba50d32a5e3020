// Megatron of 2021 and 2022 on A100s: full recomputation, or selective with sequence parallelism; attention with its
// scores in memory. Its papers name the fused kernels: bias with GELU, bias with dropout and sum, scale with mask and
// softmax. Micro-batches and virtual stages are those of the scripts that it published for its table.
#include "brrr/napkin/published_run.h"

namespace brrr {
namespace {

constexpr double kTera = 1e12;

double hardware_flops(const Gpt2Config& model) {
  const Rates any = gpu_rates(find_gpu("a100-80"), Precision::bf16_mixed);
  const FlopFacts f = flop_facts(model, model_cost(model, {.seq = 2048}, any).total(), 2048);
  return flops_per_token(Convention::megatron, f) +
         recomputed_per_token(Convention::megatron, f, RematPolicy::full);
}

// What a year of work on the same software was worth. The 530B model ran at 163 TFLOP/s in 2021 (the table that A1 to
// A5 are from, its row of 529.6B) and took 49.05 s a step in 2022 (A9): the same devices, layout (TP8 PP35, three virtual
// stages), micro-batches (280 of one sequence) and recomputation. Rates of our table are those of later libraries, so
// runs of 2021 are predicted at this share of it.
double software_of_2021() {
  const double rate_2022 = 2048 * hardware_flops(gpt_shape(20480, 105, 128)) / 49.05;
  return 163 * kTera / rate_2022;
}

SystemTraits megatron() {
  SystemTraits system;
  system.attention = AttentionMethod::unfused;
  return system;
}

// Gradients went after the last micro-batch where stages form a pipeline ("local" data parallelism), behind the
// backward part elsewhere; stages waited for what they sent each other.
SystemTraits megatron_2021(bool is_pipeline) {
  SystemTraits system = megatron();
  system.hides_data = !is_pipeline;
  system.hides_pipeline = false;
  return system;
}

void add_narayanan(std::vector<PublishedRun>& runs) {
  const double software = software_of_2021();
  const auto add = [&](const char* id, const char* what, const Gpt2Config& model, int64_t count,
                       int64_t batch, int64_t micro, ParallelLayout layout, double tflops) {
    layout.sequence_parallel = false;
    runs.push_back(
        {.id = id,
         .what = what,
         .source = "Narayanan 2021",
         .model = model,
         .gpu = "a100-80",
         .count = count,
         .seq = 2048,
         .global_batch = batch,
         .micro_batch = micro,
         .layout = layout,
         .recompute = RematPolicy::full,
         .system = megatron_2021(layout.pp > 1),
         .claim = {.shown = Shown::tflops,
                   .value = tflops,
                   .software = software,
                   .calibration = "software of 2021 from the 530B model in 2021 and 2022"}});
  };
  add("A1", "1.7B, 32 A100: predicted rate", gpt_shape(2304, 24, 24), 32, 512, 16, {}, 137);
  add("A2", "7.5B, TP4, 128 A100", gpt_shape(4096, 36, 32), 128, 512, 16, {.tp = 4}, 142);
  add("A3", "39.1B, TP8 PP2, 512 A100", gpt_shape(8192, 48, 64), 512, 1536, 4, {.tp = 8, .pp = 2},
      138);
  add("A4", "145.6B, TP8 PP8, 1536 A100", gpt_shape(12288, 80, 96), 1536, 2304, 2,
      {.tp = 8, .pp = 8, .interleave = 2}, 148);
  add("A5", "1008B, TP8 PP64, 3072 A100", gpt_shape(25600, 128, 160), 3072, 3072, 1,
      {.tp = 8, .pp = 64}, 163);
  add("A7", "174.6B, PTD-P TP8 PP12, 384 A100: predicted rate", gpt2_preset("gpt3-175b"), 384, 1536,
      1, {.tp = 8, .pp = 12}, 153);
}

// DeepSpeed beside it, without tensor or pipeline parallelism. Its code gathers parameter by parameter: the four
// matrices of a layer, while vectors stay below its threshold. That gathers were waited for is an assumption; with it
// both speeds follow, and with gathers hidden neither does (tests hold that).
void add_zero3(std::vector<PublishedRun>& runs) {
  SystemTraits system = megatron();
  system.hides_data = false;
  system.gathers_of_layer = 4;
  const auto add = [&](const char* what, int64_t count, int64_t micro, double tflops) {
    runs.push_back({.id = "A7",
                    .what = what,
                    .source = "Narayanan 2021",
                    .model = gpt2_preset("gpt3-175b"),
                    .gpu = "a100-80",
                    .count = count,
                    .seq = 2048,
                    .global_batch = 1536,
                    .micro_batch = micro,
                    .layout = {.zero = 3},
                    .recompute = RematPolicy::full,
                    .system = system,
                    .claim = {.shown = Shown::tflops, .value = tflops}});
  };
  add("ZeRO-3, micro-batch 4, 384 A100", 384, 4, 144);
  add("ZeRO-3, micro-batch 1, 1536 A100: the collapse", 1536, 1, 44);
}

void add_korthikanti(std::vector<PublishedRun>& runs) {
  struct Row {
    const char *id, *what;
    Gpt2Config model;
    int64_t count, batch, micro;
    ParallelLayout layout;
    double full, selective;  // seconds of a step
  };
  const Row rows[] = {{"A8", "22B, TP8", gpt_shape(6144, 48, 64), 8, 4, 4, {.tp = 8}, 1.42, 1.10},
                      {"A9",
                       "530B, TP8 PP35",
                       gpt_shape(20480, 105, 128),
                       280,
                       280,
                       1,
                       {.tp = 8, .pp = 35, .interleave = 3},
                       49.05,
                       37.83}};
  for (const Row& row : rows) {
    PublishedRun run{.id = row.id,
                     .what = row.layout.pp > 1 ? "530B, TP8 PP35, full recomputation: a step"
                                               : "22B, TP8, full recomputation: a step",
                     .source = "Korthikanti 2022",
                     .model = row.model,
                     .gpu = "a100-80",
                     .count = row.count,
                     .seq = 2048,
                     .global_batch = row.batch,
                     .micro_batch = row.micro,
                     .layout = row.layout,
                     .recompute = RematPolicy::full,
                     .system = megatron(),
                     .claim = {.value = row.full}};
    run.layout.sequence_parallel = false;
    runs.push_back(run);
    run.what = "sequence parallel, selective: a step";
    run.layout.sequence_parallel = true;
    run.recompute = RematPolicy::selective;
    run.claim.value = row.selective;
    runs.push_back(run);
  }
}

// One layer of the 22B model on eight devices: milliseconds forward and backward.
std::pair<double, double> layer_times(RematPolicy policy, bool sequence_parallel) {
  const GpuSpec& gpu = find_gpu("a100-80");
  const Gpt2Config model = gpt_shape(6144, 48, 64);
  RunQuestion q;
  q.layout = {.tp = 8, .sequence_parallel = sequence_parallel};
  q.recompute = policy;
  q.system = megatron();
  const Rates rates = gpu_rates(gpu, Precision::bf16_mixed, q.system.attention);
  const CostOptions options{.batch = 4, .seq = 2048, .recompute = policy};
  const StepCost whole = model_cost(model, options, rates).layers[0].one,
                 shard = model_cost(tensor_shard(model, 8), options, rates).layers[0].one;
  const MicroBatchSeconds seconds = micro_batch_seconds(q, whole, shard);
  // Two all-reduces each way, and two more where the whole layer runs again. With sequence parallelism each is a
  // gather and a scatter of the same bytes.
  const double reduce = node_reduce_seconds(gpu, 8, 4.0 * 2048 * 6144 * 2);
  const double again = policy == RematPolicy::full ? 2 : 0;
  return {1e3 * (seconds.forward + 2 * reduce), 1e3 * (seconds.backward + (2 + again) * reduce)};
}

void add_layers(std::vector<PublishedCase>& cases) {
  struct Row {
    const char* what;
    RematPolicy policy;
    bool sequence_parallel;
    double forward, backward;  // published
  };
  const Row rows[] = {{"all kept", RematPolicy::none, false, 7.7, 11.9},
                      {"sequence parallel", RematPolicy::none, true, 7.2, 11.8},
                      {"full recomputation", RematPolicy::full, false, 7.7, 19.5},
                      {"selective recomputation", RematPolicy::selective, false, 7.7, 13.2},
                      {"both", RematPolicy::selective, true, 7.2, 13.1}};
  const auto add = [&](const std::string& what, const char* unit, double published, double ours) {
    cases.push_back({.id = "A10",
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = ours,
                     .kind = CaseClass::predicted,
                     .band = usual_band(CaseClass::predicted),
                     .source = "Korthikanti 2022"});
  };
  const auto [base_forward, base_backward] = layer_times(RematPolicy::none, false);
  for (const Row& row : rows) {
    const auto [forward, backward] = layer_times(row.policy, row.sequence_parallel);
    add(join_text("one layer of the 22B, ", row.what, ": forward"), "ms", row.forward, forward);
    add("backward", "ms", row.backward, backward);
    if (row.policy != RematPolicy::none || row.sequence_parallel)
      add("both ways, over all kept", "ratio", (row.forward + row.backward) / (7.7 + 11.9),
          (forward + backward) / (base_forward + base_backward));
  }
}

}  // namespace

std::vector<PublishedRun> megatron_runs() {
  std::vector<PublishedRun> runs;
  add_narayanan(runs);
  add_zero3(runs);
  add_korthikanti(runs);
  return runs;
}

std::vector<PublishedCase> megatron_cases() {
  std::vector<PublishedCase> cases = cases_of(megatron_runs());
  add_layers(cases);
  return cases;
}

}  // namespace brrr
