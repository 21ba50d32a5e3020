// From a question about a run to its answer, number by number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "brrr/hardware/mfu.h"
#include "brrr/plan/cluster/planned_optimizer.h"
#include "brrr/plan/cluster/run_question.h"
#include "brrr/plan/model/model_limits.h"

namespace brrr::plan {
namespace {

constexpr double kDaySeconds = 86400, kHourSeconds = 3600;
constexpr int64_t kLongestDefaultSeq = 8192;

void check_sizes(const RunQuestion& q) {
  check(q.model || (q.parameters >= 1 && std::isfinite(q.parameters)), "the model has ",
        q.parameters, " parameters; give --model, or --params of at least 1");
  check(q.parameters <= 1e16, "a model of ", q.parameters,
        " parameters is beyond reason; 1e16 at most");
  check(q.tokens >= 1 && q.tokens <= 1e18, "a run over ", q.tokens,
        " tokens makes no sense; use 1 to 1e18");
  check(q.count >= 1 && q.count <= 10'000'000, q.count,
        " devices make no sense; use 1 to 10,000,000");
  check(
      !q.mfu || (*q.mfu > 0 && *q.mfu <= 1), "an mfu of ", q.mfu.value_or(0),
      " is not in (0, 1]: nothing runs above its peak. Is the peak that of sparse products, or the "
      "mfu in per cent?");
  check(q.goodput > 0 && q.goodput <= 1, "a goodput of ", q.goodput, " is not in (0, 1]");
  check(q.pue >= 1 && std::isfinite(q.pue), "a PUE of ", q.pue,
        " is no number from 1 on; a building takes at least what its devices do");
  check(q.micro_batch >= 1, "a micro-batch of ", q.micro_batch,
        " sequences is empty; use 1 or more");
  check(q.global_batch >= 0, "a global batch of ", q.global_batch,
        " sequences is empty; use 1 or more, or leave it out");
  check(q.seq >= 0 && q.seq <= 100'000'000, "a sequence of ", q.seq,
        " tokens makes no sense; use 1 to 100,000,000");
  if (q.model) check_positions(*q.model, q.seq);
  check(q.price_per_hour >= 0 && std::isfinite(q.price_per_hour), "a price of $", q.price_per_hour,
        " an hour makes no sense; use 0 or more");
  check(q.watts >= 0 && std::isfinite(q.watts), q.watts,
        " W of a device make no sense; use 0 or more");
  check(q.node_size >= 1, "a node of ", q.node_size, " devices is none; use at least 1");
  check(q.network_gb_s >= 0 && std::isfinite(q.network_gb_s), "a network of ", q.network_gb_s,
        " GB/s makes no sense; use more than 0, or 0 for the usual one");
}

void check_peak(const RunQuestion& q, double table) {
  if (!q.peak_tflops) return;
  const double ratio = *q.peak_tflops * 1e12 / table;
  check(*q.peak_tflops > 0, "a peak of ", *q.peak_tflops, " TFLOP/s is none");
  check(ratio < 1.5, "--peak ", *q.peak_tflops, " TFLOP/s is ", ratio, " times the dense ",
        table / 1e12, " of the ", q.gpu,
        ": that is the headline with 2:4 sparsity, which dense training does not reach; leave "
        "--peak out");
}

void check_layout(const RunQuestion& q) {
  const ParallelLayout& l = q.layout;
  check(l.tp >= 1 && l.pp >= 1 && l.cp >= 1 && l.ep >= 1 && l.interleave >= 1,
        "degrees of parallelism are 1 or more: tp ", l.tp, ", pp ", l.pp, ", cp ", l.cp, ", ep ",
        l.ep, ", interleave ", l.interleave);
  check(l.zero >= 0 && l.zero <= 3, "ZeRO has stages 0 to 3, not ", l.zero);
  const int64_t cut = l.tp * l.pp * l.cp;
  check(q.count % cut == 0, "tp ", l.tp, " x pp ", l.pp, " x cp ", l.cp, " = ", cut,
        " does not divide ", q.count, " devices");
  if (!q.model) {
    check(cut == 1 && l.ep == 1,
          "a layout needs the shape of the model; give --model, not --params");
    return;
  }
  const ModelShape shape = shape_of(*q.model);
  check(l.pp <= shape.layers, "pp ", l.pp, ": a device has at least one layer, and the model has ",
        shape.layers, " layers; use fewer stages");
  // The first and the last stage have the table of tokens and the head, so they may do without a layer.
  check(l.interleave == 1 || l.pp * l.interleave <= shape.layers + 2, "pp ", l.pp, " x interleave ",
        l.interleave, " = ", l.pp * l.interleave, " stages are too many for ", shape.layers,
        " layers: all but the first and the last have at least one; use fewer");
  check(q.seq % l.cp == 0, "cp ", l.cp, " does not divide a sequence of ", q.seq);
  tensor_shard(*q.model, l.tp);  // refuses what tp does not divide
  check(l.ep == 1 || shape.experts > 0, "ep ", l.ep, ": the model has no experts");
  if (l.ep > 1) {
    check(shape.experts % l.ep == 0, "ep ", l.ep, " does not divide ", shape.experts, " experts");
    check((q.count / (l.tp * l.pp)) % l.ep == 0, "ep ", l.ep, " does not divide the ",
          q.count / (l.tp * l.pp), " data-parallel devices that experts lie over");
  }
}

}  // namespace

int64_t choose_batch(const RunQuestion& q, double parameters, int64_t dp) {
  const double wanted = parameters < 1e9 ? 0.5e6 : parameters < 2e10 ? 1e6 : 4e6;
  const auto unit = static_cast<double>(dp * q.micro_batch);
  const double rounds = std::round(wanted / (unit * static_cast<double>(q.seq)));
  return static_cast<int64_t>(unit * std::max(1.0, rounds));
}

namespace {

void close_open_settings(RunAnswer& a) {
  RunQuestion& q = a.question;
  if (q.seq == 0) q.seq = q.model ? std::min(context_of(*q.model), kLongestDefaultSeq) : 2048;
  check_layout(q);
  a.dp = q.count / (q.layout.tp * q.layout.pp * q.layout.cp);
  const bool is_chosen = q.global_batch == 0;
  if (is_chosen) q.global_batch = choose_batch(q, a.params, a.dp);
  const int64_t unit = a.dp * q.micro_batch;
  check(q.global_batch % unit == 0, "a global batch of ", q.global_batch,
        " sequences is not a multiple of ", a.dp, " data-parallel devices x micro-batch ",
        q.micro_batch);
  a.micro_batches = q.global_batch / unit;
  a.step_tokens = static_cast<double>(q.global_batch) * static_cast<double>(q.seq);
  if (is_chosen)
    a.assumptions.push_back(fmt::format("global batch chosen: {} sequences of {} = {:.3g} tokens",
                                        q.global_batch, q.seq, a.step_tokens));
}

// A bare number of parameters has nothing to count but 6 N.
Convention convention_of(const RunQuestion& q) {
  return q.model ? q.convention : Convention::six_n;
}

void add_flops(RunAnswer& a, const RunCost& cost) {
  const RunQuestion& q = a.question;
  a.facts = q.model ? flop_facts(*q.model, cost.whole.total(), q.micro_batch * q.seq)
                    : flop_facts(q.parameters);
  const Convention convention = convention_of(q);
  const double exact = flops_per_token(Convention::exact, a.facts);
  a.flops_per_token = flops_per_token(convention, a.facts);
  a.total_flops = a.flops_per_token * q.tokens;
  a.six_nd_error = flops_per_token(Convention::six_n, a.facts) / exact - 1;
  a.attention_share = 3 * a.facts.attention / exact;
  a.assumptions.push_back(fmt::format("FLOPs by convention \"{}\": {}", info_of(convention).name,
                                      info_of(convention).formula));
}

// Searches ask for the same model again and again; tracing it is most of the time of an answer.
const ModelCost& known_cost(const ModelConfig& config, const CostOptions& options,
                            const hardware::Rates& rates) {
  constexpr size_t kMostKnown = 256;
  thread_local std::map<std::string, ModelCost> known;
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", to_json(config), options.target,
                  options.expert_devices, options.monitored, options.batch, options.seq,
                  static_cast<int>(options.precision), static_cast<int>(options.recompute),
                  options.fuse, options.optimizer, rates.machine, rates.source);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (known.size() >= kMostKnown) known.clear();
  return known.emplace(key, model_cost(config, options, rates)).first->second;
}

// A system that runs ops one by one has a bf16 program whose layers multiply in fp8; casts of operands are counted next
// to it (run_framework.cpp), and the head stays in bf16.
ModelCost cost_of_low_products(const RunQuestion& q, const ModelConfig& config,
                               CostOptions options) {
  const hardware::GpuSpec& gpu = hardware::find_gpu(q.gpu);
  options.precision = compiler::Precision::bf16_mixed;
  const hardware::Rates half =
      q.rates ? *q.rates : gpu_rates(gpu, options.precision, q.system.attention);
  hardware::Rates low =
      q.rates ? *q.rates : gpu_rates(gpu, compiler::Precision::fp8_mixed, q.system.attention);
  for (const char* family : {"matmul.nn", "matmul.nt", "matmul.tn", "scale.matmul"}) {
    if (const hardware::RateGrid* grid = low.find(join_text(family, ".fp8")))
      low.grids[join_text(family, ".bf16")] = *grid;
  }
  low.source += ", products of 16 bits at the rate of 8";
  ModelCost cost = known_cost(config, options, low);
  cost.outside = known_cost(config, options, half).outside;
  return cost;
}

std::string largest_part(const RunMemory& m) {
  const std::pair<double, const char*> parts[] = {
      {m.params, "parameters"},   {m.grads, "gradients"},         {m.master, "master weights"},
      {m.optimizer, "optimizer"}, {m.activations, "activations"}, {m.logits, "logits"},
      {m.buffers, "buffers"}};
  return std::max_element(std::begin(parts), std::end(parts))->second;
}

// The part without which a step would be shortest. Work behind which traffic hides saves nothing where the traffic is as
// long as the step.
std::string binding_of(const RunAnswer& a) {
  if (!a.fits) return join_text("memory: the largest part is ", largest_part(a.memory));
  if (!a.is_predicted) return "compute, at the given MFU";
  const double bubble = a.traffic.bubble * a.step_seconds;
  const auto saved = [&](double work) {
    return std::min(work, a.step_seconds - a.traffic.seconds() - bubble);
  };
  const std::pair<double, const char*> parts[] = {
      {saved(a.compute_seconds), "compute: products and attention"},
      {saved(a.bandwidth_seconds), "memory bandwidth: what lies between the products"},
      {saved(a.overhead_seconds), "overhead: kernels too small for the device"},
      {a.traffic.exposed_seconds, "communication that does not hide"},
      {bubble, "the pipeline bubble"}};
  const auto shorter = [](const auto& x, const auto& y) { return x.first < y.first; };
  return std::max_element(std::begin(parts), std::end(parts), shorter)->second;
}

void add_time_and_cost(RunAnswer& a, const hardware::GpuSpec& gpu) {
  const RunQuestion& q = a.question;
  const double all_peak = a.peak_flops_per_second * static_cast<double>(q.count);
  if (q.mfu) a.step_seconds = a.flops_per_token * a.step_tokens / (all_peak * *q.mfu);
  a.tokens_per_second = a.step_tokens / a.step_seconds;
  a.mfu = a.flops_per_token * a.tokens_per_second / all_peak;
  // What runs again is counted as the model is: an attention over visible pairs, or over the square, in both.
  a.hfu = a.mfu *
          (1 + recomputed_per_token(convention_of(q), a.facts, q.recompute) / a.flops_per_token);
  a.steps = q.tokens / a.step_tokens;
  a.days = q.tokens / a.tokens_per_second / q.goodput / kDaySeconds;
  a.gpu_hours = a.days * kDaySeconds / kHourSeconds * static_cast<double>(q.count);
  a.cost_usd = a.gpu_hours * q.price_per_hour;
  const double watts = q.watts > 0 ? q.watts : gpu.watts;
  a.energy_kwh = a.gpu_hours * watts / 1000 * q.pue;
  if (watts > 0)
    a.assumptions.push_back(fmt::format("{:.0f} W a device{}, PUE {}", watts,
                                        q.watts > 0 ? "" : " (the board's limit)", q.pue));
  if (q.price_per_hour == 0)
    a.assumptions.emplace_back("no price of a device is given (--price): cost 0");
  if (q.goodput == 1)
    a.assumptions.emplace_back("goodput 1: no restarts, checkpoints or evaluation");
}

// Nothing but a count of parameters: states by recipe, cut by ZeRO, and nothing known of activations.
RunMemory states_only(const RunQuestion& q, int64_t dp) {
  const StateRecipe r = state_recipe(q.precision, q.optimizer, q.grads);
  const auto d = static_cast<double>(dp);
  const auto part = [&](double bytes, int from) {
    return q.parameters * bytes / (q.layout.zero >= from ? d : 1);
  };
  return {.params = part(r.params, 3),
          .grads = part(r.grads, 2),
          .master = part(r.master, 1),
          .optimizer = part(r.optimizer, 1)};
}

// What the graph of a device has beside the products of its tokens.
void add_graph_assumptions(RunAnswer& a) {
  const RunQuestion& q = a.question;
  const int64_t layers = shape_of(*q.model).layers, stages = q.layout.pp * q.layout.interleave;
  if (layers % stages != 0)
    a.assumptions.push_back(fmt::format(
        "{} layers over {} stages: {} or {} each, the longer ones just before the last; the "
        "longest device sets the pace",
        layers, stages, layers / stages, layers / stages + 1));
  if (q.layout.ep > 1)
    a.assumptions.push_back(fmt::format(
        "a device has 1/{} of a layer's experts, and their tokens of all {}: as many as it sends",
        q.layout.ep, q.layout.ep));
  if (q.precision == compiler::Precision::fp8_mixed && !casts_apart(q))
    a.assumptions.push_back(join_text(
        "the forward part of every micro-batch scales and rounds weights from f32 to copies in 8 "
        "bits, 9 bytes of a parameter through memory",
        q.recompute != compiler::RematPolicy::none ? ""
        : q.layout.zero == 3 ? "; ZeRO-3 makes them again from what it gathers"
                             : "; the copies are kept for the backward part, a byte a "
                               "parameter, once for all micro-batches",
        "; products lie in f32 until they are scaled, the head's too"));
}

}  // namespace

namespace {

// brrr's own step is priced by the program that it compiles for the GPU: epilogues, padding, grouping and fp8 as they
// run there. Other systems, and devices that no program can be compiled for (another vendor's, or one that the table
// knows too little of), are priced by the CPU's lowering, which fuses elementwise neighbours and nothing more.
std::string priced_target(const RunQuestion& q) {
  const hardware::GpuSpec& gpu = hardware::find_gpu(q.gpu);
  const bool is_known =
      gpu.compute_capability && gpu.multiprocessors > 0 && gpu.shared_per_block.value() > 0;
  const bool is_own = q.system.framework == Framework::brrr && q.system.fuse;
  return is_known && is_own ? join_text("cuda:", gpu.name) : "cpu";
}
bool has_own_rates(const RunQuestion& q) {
  return priced_target(q) != "cpu" && q.system.attention == AttentionMethod::current;
}

// What matmuls run in. On tensor cores brrr multiplies f32 as tf32 unless a run asks for all bits.
hardware::Arithmetic arithmetic_of_run(const RunQuestion& q) {
  const bool is_tf32 = q.model && q.precision == compiler::Precision::f32 &&
                       priced_target(q) != "cpu" &&
                       hardware::find_gpu(q.gpu).find(hardware::Arithmetic::tf32);
  return is_tf32 ? hardware::Arithmetic::tf32 : arithmetic_of(q.precision);
}

}  // namespace

hardware::Rates run_rates(const RunQuestion& q) {
  if (q.rates) return *q.rates;
  const hardware::GpuSpec& gpu = hardware::find_gpu(q.gpu);
  return has_own_rates(q) ? own_gpu_rates(gpu) : gpu_rates(gpu, q.precision, q.system.attention);
}

RunCost run_cost(const RunQuestion& q) {
  if (!q.model) fail("a number of parameters has no graph to price; give --model");
  const hardware::Rates rates = run_rates(q);
  const CostOptions options{.batch = q.micro_batch,
                            .seq = q.seq,
                            .precision = q.precision,
                            .recompute = q.recompute,
                            .optimizer = std::string(planned_optimizer(q.optimizer).rule),
                            .fuse = q.system.fuses(),
                            .target = priced_target(q),
                            // Frameworks and systems of single ops have no guard in their step.
                            .monitored = q.system.fuse && q.system.is_tuned()};
  const auto cost_of = [&](int64_t tp, int64_t ep) {
    CostOptions shard = options;
    shard.expert_devices = ep;
    const ModelConfig config = tensor_shard(*q.model, tp);
    return casts_apart(q) ? cost_of_low_products(q, config, shard)
                          : known_cost(config, shard, rates);
  };
  const int64_t tp = q.layout.tp, ep = q.layout.ep;
  RunCost cost{.whole = cost_of(1, ep), .shard = {}, .updated = {}};
  cost.shard = tp == 1 ? cost.whole : cost_of(tp, ep);
  // An update of whole matrices, as Muon's: they are shared out among the devices, not cut.
  const bool is_whole = !planned_optimizer(q.optimizer).whole_matrices.empty();
  cost.updated =
      is_whole ? cost_of(1, 1).total() * (1 / static_cast<double>(tp)) : cost_of(tp, 1).total();
  return cost;
}

RunAnswer answer(const RunQuestion& question) {
  check_sizes(question);
  if (question.model && question.recompute == compiler::RematPolicy::budget)
    return answer_within_memory(question);
  RunAnswer a{.question = question};
  RunQuestion& q = a.question;
  const hardware::GpuSpec& gpu = hardware::find_gpu(q.gpu);
  q.gpu = gpu.name;
  const hardware::PeakRate& peak = gpu.peak(arithmetic_of_run(q));
  check_peak(q, peak.dense.value());
  a.peak_flops_per_second = q.peak_tflops ? *q.peak_tflops * 1e12 : peak.dense.value();
  a.params = q.model ? static_cast<double>(parameter_count(*q.model)) : q.parameters;
  a.assumptions.push_back(
      fmt::format("peak of {} in {}: {}, dense ({})", gpu.name, hardware::to_text(peak.arithmetic),
                  to_text(FlopsPerSecond(a.peak_flops_per_second)), peak.source));
  close_open_settings(a);
  RunCost cost;
  if (q.model) {
    cost = run_cost(q);
    a.memory = run_memory(q, cost, a.dp, a.micro_batches);
    a.traffic = run_traffic(q, cost, a.dp, a.micro_batches);
    add_graph_assumptions(a);
  } else {
    a.memory = states_only(q, a.dp);
    a.assumptions.emplace_back(
        "only a number of parameters is known: no attention, no activations, no "
        "traffic; memory is that of the states");
    check(q.mfu.has_value(),
          "a bare number of parameters has no graph to predict from; give --mfu, or --model");
  }
  add_flops(a, cost);
  a.active_params = a.facts.parameters;
  if (q.model && !q.mfu) {
    predict_step(a, cost);
    a.assumptions.emplace_back(q.system.fuses()
                                   ? "elementwise ops fused with what they stand beside"
                                   : "elementwise ops launched one by one (--unfused)");
    a.assumptions.push_back(update_assumption(q, cost, a.dp));
    for (std::string& line : framework_assumptions(q)) a.assumptions.push_back(std::move(line));
    if (q.count > 1) a.assumptions.push_back(traffic_assumption(q));
    if (q.rates) {
      a.assumptions.push_back(join_text(q.rates->calibrated ? "calibrated: " : "uncalibrated: ",
                                        q.rates->machine, ", ", q.rates->source));
    } else if (has_own_rates(q)) {
      a.assumptions.push_back(join_text("uncalibrated: the program that brrr compiles for the ",
                                        gpu.name, ", priced by ", own_gpu_rates(gpu).source));
    } else {
      for (std::string& line : gpu_rate_assumptions(gpu, q.precision, q.system.attention))
        a.assumptions.push_back(std::move(line));
    }
  }
  add_time_and_cost(a, gpu);
  a.fits = a.memory.total() <= static_cast<double>(gpu.memory.value());
  a.binding = binding_of(a);
  return a;
}

}  // namespace brrr::plan
