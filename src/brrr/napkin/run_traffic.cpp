// What one device sends in a step, by kind of parallelism, and how much of that time stays visible.
//
//   ring all-reduce of S bytes over n devices   2 S (n - 1) / n sent by each; half of it to gather or scatter
//   data      all-reduce of the gradients; ZeRO-3 gathers parameters twice and scatters gradients, each time
//   tensor    a layer and micro-batch: 4 all-reduces of b s h (6 where layers run again)
//   pipeline  b s h each way at a boundary, for every micro-batch and virtual stage
//   context   keys and values go round: 2 b (s/c) k d, c - 1 hops, twice as much backward
//   expert    2 all-to-alls each way of b s K h
#include <algorithm>

#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

constexpr double kLinkShare = 0.85;  // of a link's rate that collectives reach
constexpr double kElementBytes = 2;  // activations travel in 16 bits

double network_rate(const RunQuestion& question, const GpuSpec& gpu) {
  if (question.network_gb_s > 0) return question.network_gb_s * 1e9;
  // One adapter a device: 200 Gb/s with the A100, 400 Gb/s from the H100 on.
  return gpu.bandwidth.value() > 3e12 ? 50e9 : 25e9;
}

double fast_link(const GpuSpec& gpu) {
  return std::max(1e9, gpu.link.one_way().value()) * kLinkShare;
}

double ring(int64_t ranks) { return static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

}  // namespace

RunTraffic run_traffic(const RunQuestion& question, const RunCost& cost, int64_t dp,
                       int64_t micro_batches) {
  const GpuSpec& gpu = find_gpu(question.gpu);
  const ParallelLayout& layout = question.layout;
  const ModelShape shape = shape_of(*question.model);
  const auto m = static_cast<double>(micro_batches), p = static_cast<double>(layout.pp),
             c = static_cast<double>(layout.cp), v = static_cast<double>(layout.interleave);
  const double rows =
      static_cast<double>(question.micro_batch * question.seq) / c;  // tokens of a micro-batch
  const double layers = static_cast<double>(shape.layers) / p;
  const double stream = rows * static_cast<double>(shape.width) * kElementBytes;
  const double slow = network_rate(question, gpu) * kLinkShare, fast = fast_link(gpu);
  const auto rate_over = [&](int64_t devices) {
    return devices <= question.node_size ? fast : slow;
  };

  RunTraffic traffic;
  const StateRecipe recipe = state_recipe(question.precision, question.optimizer, question.grads);
  const int64_t ranks = dp * layout.cp;
  const StepCost total = cost.shard.total();
  const double held =
      (total.parameters() - total.experts) / p + total.experts / p / static_cast<double>(layout.ep);
  const double gathers = layout.zero == 3
                             ? (2 * m * recipe.params + m * recipe.grads)
                             : recipe.grads + (layout.zero > 0 ? recipe.params : recipe.grads);
  traffic.data = held * gathers * ring(ranks);
  traffic.data_seconds = traffic.data / rate_over(layout.tp * ranks);

  if (layout.tp > 1) {
    const double reduces = question.recompute == RematPolicy::full ? 6 : 4;
    traffic.tensor = reduces * 2 * stream * ring(layout.tp) * layers * m;
    traffic.tensor_seconds = traffic.tensor / rate_over(layout.tp);
  }
  if (layout.pp > 1) {
    traffic.pipeline = 2 * stream * m * v / static_cast<double>(layout.tp);
    traffic.pipeline_seconds = traffic.pipeline / rate_over(layout.tp * layout.cp * layout.pp);
    traffic.bubble = (p - 1) / (v * m + p - 1);
  }
  if (layout.cp > 1) {
    const double keys = 2 * rows * static_cast<double>(shape.kv_heads) * shape.pair_width /
                        static_cast<double>(shape.heads) * kElementBytes /
                        static_cast<double>(layout.tp);
    traffic.context = 3 * keys * (c - 1) * layers * m;
    traffic.context_seconds = traffic.context / rate_over(layout.tp * layout.cp);
  }
  if (layout.ep > 1) {
    const auto& llama = std::get<LlamaConfig>(*question.model);
    const double mixed = static_cast<double>(shape.layers - llama.dense_layers) / p;
    traffic.expert = 4 * stream * static_cast<double>(llama.top_k) * ring(layout.ep) * mixed * m;
    traffic.expert_seconds = traffic.expert / rate_over(layout.tp * layout.ep);
  }
  // Gradients travel behind the last backward part; ZeRO-3's gathers behind every micro-batch.
  const double share = 1 / (p * c);
  const double backward = total.backward_seconds * share, both = total.seconds() * share;
  const double hides = layout.zero == 3 ? both * m : backward;
  traffic.exposed_seconds = std::max(0.0, traffic.data_seconds - hides) + traffic.tensor_seconds +
                            traffic.pipeline_seconds / m + traffic.expert_seconds +
                            std::max(0.0, traffic.context_seconds - both * m);
  return traffic;
}

}  // namespace brrr
