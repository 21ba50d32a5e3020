// What is predicted of Megatron beside whole steps (published/megatron.toml): single layers, and its software of 2021.
#include "brrr/plan/published/published_toml.h"

namespace brrr::plan {
namespace {

constexpr double kTera = 1e12;

double hardware_flops(const Gpt2Config& model) {
  const hardware::Rates any =
      gpu_rates(hardware::find_gpu("a100-80"), compiler::Precision::bf16_mixed);
  const FlopFacts f = flop_facts(model, model_cost(model, {.seq = 2048}, any).total(), 2048);
  return flops_per_token(Convention::megatron, f) +
         recomputed_per_token(Convention::megatron, f, compiler::RematPolicy::full);
}

// One layer of the 22B model on eight devices: milliseconds forward and backward.
std::pair<double, double> layer_times(compiler::RematPolicy policy, bool sequence_parallel) {
  const hardware::GpuSpec& gpu = hardware::find_gpu("a100-80");
  const Gpt2Config model = gpt_shape(6144, 48, 64);
  RunQuestion q;
  q.layout = {.tp = 8, .sequence_parallel = sequence_parallel};
  q.recompute = policy;
  q.system = published_system("megatron_2022");
  const hardware::Rates rates = gpu_rates(gpu, compiler::Precision::bf16_mixed, q.system.attention);
  const CostOptions options{.batch = 4, .seq = 2048, .recompute = policy};
  const StepCost whole = model_cost(model, options, rates).layers[0].one,
                 shard = model_cost(tensor_shard(model, 8), options, rates).layers[0].one;
  const MicroBatchSeconds seconds = micro_batch_seconds(q, whole, shard);
  // Two all-reduces each way, and two more where the whole layer runs again. With sequence parallelism each is a
  // gather and a scatter of the same bytes.
  const double reduce = node_reduce_seconds(gpu, 8, 4.0 * 2048 * 6144 * 2);
  const double again = policy == compiler::RematPolicy::full ? 2 : 0;
  return {1e3 * (seconds.forward + 2 * reduce), 1e3 * (seconds.backward + (2 + again) * reduce)};
}

// A row of the table of layers in megatron.toml.
struct LayerRow {
  std::string what;
  compiler::RematPolicy policy = compiler::RematPolicy::none;
  bool sequence_parallel = false;
  double forward = 0, backward = 0;  // published, in milliseconds
};

LayerRow read_row(const toml::node& node) {
  check(node.is_table(), "megatron.toml: a row of layers is not a table");
  TomlEntry entry(*node.as_table(), "megatron.toml: [[layers.row]]");
  LayerRow row{.what = entry.text("what"),
               .policy = compiler::parse_policy(entry.text("recompute")),
               .sequence_parallel = entry.flag_or("sequence_parallel", false),
               .forward = entry.required("forward_ms"),
               .backward = entry.required("backward_ms")};
  entry.require_all_used();
  return row;
}

void add_layers(std::vector<PublishedCase>& cases) {
  const toml::table& table = *published_file("megatron")["layers"].as_table();
  const auto id = table["id"].value<std::string>().value(),
             source = table["source"].value<std::string>().value();
  std::vector<LayerRow> rows;
  for (const toml::node& row : *table["row"].as_array()) rows.push_back(read_row(row));
  const auto add = [&](const std::string& what, const char* unit, double published, double ours) {
    cases.push_back({.id = id,
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = ours,
                     .kind = CaseClass::predicted,
                     .band = usual_band(CaseClass::predicted),
                     .source = source});
  };
  const auto [base_forward, base_backward] = layer_times(compiler::RematPolicy::none, false);
  const double all_kept = rows.front().forward + rows.front().backward;
  for (const LayerRow& row : rows) {
    const auto [forward, backward] = layer_times(row.policy, row.sequence_parallel);
    add(join_text("one layer of the 22B, ", row.what, ": forward"), "ms", row.forward, forward);
    add("backward", "ms", row.backward, backward);
    if (row.policy != compiler::RematPolicy::none || row.sequence_parallel)
      add("both ways, over all kept", "ratio", (row.forward + row.backward) / all_kept,
          (forward + backward) / (base_forward + base_backward));
  }
}

}  // namespace

// What a year of work on the same software was worth. The 530B model ran at 163 TFLOP/s in 2021 (the table that A1 to
// A5 are from, its row of 529.6B) and took 49.05 s a step in 2022 (A9): the same devices, layout (TP8 PP35, three virtual
// stages), micro-batches (280 of one sequence) and recomputation. Rates of our table are those of later libraries, so
// runs of 2021 are predicted at this share of it.
double megatron_2021_share() {
  const double rate_2022 = 2048 * hardware_flops(gpt_shape(20480, 105, 128)) / 49.05;
  return 163 * kTera / rate_2022;
}

std::vector<PublishedCase> megatron_cases() {
  std::vector<PublishedCase> cases = cases_of(megatron_runs());
  add_layers(cases);
  return cases;
}

}  // namespace brrr::plan
