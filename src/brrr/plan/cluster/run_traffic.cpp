// What one device sends in a step, by kind of parallelism, and how much of that time stays visible.
//
//   ring all-reduce of S bytes over n devices   2 S (n - 1) / n sent by each; half of it to gather or scatter
//   data      all-reduce of the gradients; ZeRO-1 scatters gradients and gathers parameters once a step. A device that
//             has but its share of the gradients (ZeRO-2 and 3) scatters them after every micro-batch, as DeepSpeed
//             does; ZeRO-3 also gathers parameters twice in each
//   tensor    a layer and micro-batch: 4 all-reduces of b s h (6 where layers run again)
//   pipeline  b s h each way at a boundary, for every micro-batch and virtual stage
//   context   keys and values go round: 2 b (s/c) k d, c - 1 hops; backward they do so again, and their gradients;
//             once more where attention runs again
//   expert    b s h to K experts and back, forward and backward; once more where layers run again. Of K copies those
//             for the device itself stay. A tuned system sends one to each of the N nodes that a token goes to, on
//             average N (1 - (1 - 1/N)^K), and from there over the links; in fp8 the way there is in 8 bits
// Experts have as many copies as data-parallel devices over ep: their gradients go round so many.
//
// Rates are those that NCCL is known to reach: 370 of NVLink4's 450 GB/s in a ring, and 192 of the 200 GB/s that
// eight adapters of a DGX A100 have (its maintainers, nccl-tests issue 212 and nccl issue 812). A device sends to other
// nodes through an adapter of its own. A ring over whole nodes can use all of a node together, eight times as much:
// MPT-13B has the same speed on 8 H100s and on 64, with gathers that take three times its step at the rate of one
// (llm-foundry's table). Others whose data-parallel groups fill nodes went at the rate of one (A7 twice, and A21), so
// it is a trait of the system. Each step of a ring waits for a hop; latencies are those of NCCL's tuning table.
//
// Traffic of a framework that hides behind arithmetic is not free: a collective holds a multiprocessor for each of its
// 24 channels (what NCCL reports on nodes of eight A100s or H100s), and for that time the arithmetic has the others.
// Tokens that travel to experts while another micro-batch computes hold 20 SMs (DeepSeek-V3, section 3.2.2).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brrr/plan/cluster/pipeline_stages.h"

namespace brrr::plan {
namespace {

constexpr double kLinkShare = 370.0 / 450;     // of a link's rate that a ring reaches
constexpr double kNetworkShare = 192.0 / 200;  // of the adapters' rate
constexpr double kRingStartSeconds = 8.4e-6, kLinkHopSeconds = 3.4e-6, kNetworkHopSeconds = 14e-6;
constexpr double kFlagStartSeconds = 6.6e-6, kFlagHopSeconds = 0.6e-6;
constexpr double kElementBytes = 2;  // activations travel in 16 bits
constexpr double kCollectiveChannels = 24, kExpertChannels = 20;

double network_rate(const RunQuestion& question, const hardware::GpuSpec& gpu) {
  if (question.network_gb_s > 0) return question.network_gb_s * 1e9;
  // One adapter a device: 200 Gb/s with the A100, 400 Gb/s from the H100 on, whose links are NVLink4's.
  return gpu.link.one_way() >= BytesPerSecond(440e9) ? 50e9 : 25e9;
}

double fast_link(const hardware::GpuSpec& gpu) {
  return std::max(1e9, gpu.link.one_way().value()) * kLinkShare;
}

// Bytes a second that one device of a ring sends when the ring leaves the node.
double slow_link(const RunQuestion& question, const hardware::GpuSpec& gpu) {
  const double adapter = network_rate(question, gpu) * kNetworkShare;
  if (!question.system.node_rings) return adapter;
  return std::min(fast_link(gpu), adapter * static_cast<double>(question.node_size));
}

// The part of a device that so many channels of a collective hold while they run beside arithmetic.
double held_share(double channels, const hardware::GpuSpec& gpu) {
  if (gpu.multiprocessors <= 0) return 0;
  return std::min(1.0, channels / static_cast<double>(gpu.multiprocessors));
}

// Seconds that one way around a ring takes an empty message. A gather goes round once, an all-reduce twice.
double ring_latency(int64_t devices, int64_t of_one_node) {
  const int64_t nodes = (devices + of_one_node - 1) / of_one_node;
  const int64_t hops = devices - 1, crossings = nodes > 1 ? std::min(nodes, hops) : 0;
  return kRingStartSeconds + static_cast<double>(crossings) * kNetworkHopSeconds +
         static_cast<double>(hops - crossings) * kLinkHopSeconds;
}

double ring(int64_t ranks) { return static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

// An all-reduce by the quicker of two protocols: one for large messages, and one that sends a flag with every word,
// at half the rate and a fifth of the latency.
double reduce_seconds(double bytes, int64_t devices, double rate) {
  const double sent = 2 * bytes * ring(devices) / rate;
  const double hops = 2 * static_cast<double>(devices - 1);
  return std::min(sent + kRingStartSeconds + hops * kLinkHopSeconds,
                  2 * sent + kFlagStartSeconds + hops * kFlagHopSeconds);
}

struct Links {
  double fast = 0, slow = 0;  // bytes a second, within a node and beyond
  int64_t node_size = 8;
  double over(int64_t devices) const { return devices <= node_size ? fast : slow; }
};

// Gradients, and under ZeRO-3 parameters. `crossing` is what one device has of them before they are shared out, each
// times (n - 1) / n of the n devices that have it, too; every micro-batch passes every layer.
void add_data_traffic(const RunQuestion& question, const Links& links, double crossing,
                      int64_t ranks, double layer_passes, double micro_batches,
                      RunTraffic& traffic) {
  const StateRecipe recipe = state_recipe(question.precision, question.optimizer, question.grads);
  const ParallelLayout& layout = question.layout;
  const SystemTraits& system = question.system;
  const double gathered = system.gather_bytes > 0 ? system.gather_bytes : recipe.params;
  double sent = 2 * recipe.grads;
  if (layout.zero == 1) sent = recipe.grads + recipe.params;
  if (layout.zero == 2) sent = micro_batches * recipe.grads + recipe.params;
  if (layout.zero == 3) sent = micro_batches * (2 * gathered + recipe.grads);
  traffic.data = crossing * sent;
  traffic.data_seconds = traffic.data / links.over(layout.tp * ranks);
  if (layout.zero < 3 || ranks == 1) return;
  const int64_t of_one_node = std::max<int64_t>(1, question.node_size / layout.tp);
  traffic.data_seconds +=
      3 * layer_passes * system.gathers_of_layer * ring_latency(ranks, of_one_node);
}

// Copies of a token that one device sends to experts on ep devices: over the network, and over links of a node.
struct ExpertCopies {
  double network = 0, link = 0;
};

ExpertCopies expert_copies(const RunQuestion& question, double top_k) {
  const int64_t ep = question.layout.ep,
                of_one_node = std::max<int64_t>(1, question.node_size / question.layout.tp);
  if (ep <= of_one_node) return {.link = top_k * ring(ep)};
  const auto nodes = static_cast<double>(ep) / static_cast<double>(of_one_node);
  const double other_nodes = 1 - 1 / nodes;
  if (!question.system.overlaps_experts())
    return {.network = top_k * other_nodes, .link = top_k / nodes * ring(of_one_node)};
  const double visited = nodes * (1 - std::pow(1 - 1 / nodes, top_k));
  return {.network = visited * other_nodes, .link = top_k * ring(of_one_node)};
}

// `elements` are those of a micro-batch, and `passes` the layers with experts that all micro-batches go through.
void add_expert_traffic(const RunQuestion& question, const Links& links, double elements,
                        double passes, RunTraffic& traffic) {
  const auto top_k = static_cast<double>(shape_of(*question.model).top_k);
  const bool is_low =
      question.precision == compiler::Precision::fp8_mixed && question.system.overlaps_experts();
  const double ways = question.recompute == compiler::RematPolicy::full ? 3 : 2;  // there and back
  const double bytes = ways * ((is_low ? 1 : kElementBytes) + kElementBytes) * elements * passes;
  const ExpertCopies copies = expert_copies(question, top_k);
  traffic.expert = bytes * (copies.network + copies.link);
  traffic.expert_seconds = bytes * std::max(copies.network / links.slow, copies.link / links.fast);
}

// What of the way to experts the arithmetic waits for. The first micro-batch has none to travel beside.
double seen_of_experts(const RunQuestion& question, const hardware::GpuSpec& gpu, double seconds,
                       double arithmetic, double micro_batches) {
  if (!question.system.overlaps_experts()) return seconds;
  const double seen = std::max(seconds / micro_batches, seconds - arithmetic);
  return seen + held_share(kExpertChannels, gpu) * (seconds - seen);
}

}  // namespace

double node_reduce_seconds(const hardware::GpuSpec& gpu, int64_t devices, double bytes) {
  return reduce_seconds(bytes, devices, fast_link(gpu));
}

std::string traffic_assumption(const RunQuestion& question) {
  const hardware::GpuSpec& gpu = hardware::find_gpu(question.gpu);
  return fmt::format(
      "rings reach {:.0f} GB/s over {} within {} devices and {:.0f} GB/s of {} beyond, {:.1f} and "
      "{:.0f} us a hop",
      fast_link(gpu) / 1e9, gpu.link.name, question.node_size, slow_link(question, gpu) / 1e9,
      question.system.node_rings ? "all adapters of a node" : "one adapter a device",
      1e6 * kLinkHopSeconds, 1e6 * kNetworkHopSeconds);
}

RunTraffic run_traffic(const RunQuestion& question, const RunCost& cost, int64_t dp,
                       int64_t micro_batches) {
  const hardware::GpuSpec& gpu = hardware::find_gpu(question.gpu);
  const ParallelLayout& layout = question.layout;
  if (!question.model) fail("traffic is that of a model; a number of parameters has none");
  const ModelConfig& model = *question.model;
  const ModelShape shape = shape_of(model);
  const auto m = static_cast<double>(micro_batches), p = static_cast<double>(layout.pp),
             c = static_cast<double>(layout.cp), v = static_cast<double>(layout.interleave);
  const double rows =
      static_cast<double>(question.micro_batch * question.seq) / c;  // tokens of a micro-batch
  // Of the device that has most layers: the others wait for it.
  const double held = largest_stage_share(shape.layers, layout);
  const double layers = static_cast<double>(shape.layers) * held;
  const double stream = rows * static_cast<double>(shape.width) * kElementBytes;
  const Links links{
      .fast = fast_link(gpu), .slow = slow_link(question, gpu), .node_size = question.node_size};

  RunTraffic traffic;
  const int64_t ranks = dp * layout.cp;
  const StepCost total = cost.shard.total();
  const double crossing = (total.parameters() - total.experts) * held * ring(ranks) +
                          total.experts * held * ring(ranks / layout.ep);
  add_data_traffic(question, links, crossing, ranks, layers * m, m, traffic);

  const bool runs_again = question.recompute == compiler::RematPolicy::full;
  if (layout.tp > 1) {
    const double reduces = runs_again ? 6 : 4;
    traffic.tensor = reduces * 2 * stream * ring(layout.tp) * layers * m;
    traffic.tensor_seconds =
        reduces * layers * m * reduce_seconds(stream, layout.tp, links.over(layout.tp));
  }
  if (layout.pp > 1) {
    traffic.pipeline = 2 * stream * m * v / static_cast<double>(layout.tp);
    traffic.pipeline_seconds = traffic.pipeline / links.over(layout.tp * layout.cp * layout.pp);
    traffic.bubble = (p - 1) / (v * m + p - 1);
  }
  if (layout.cp > 1) {
    // Key heads below tp are copied: a device has at least one.
    const auto key_heads = static_cast<double>(std::max<int64_t>(1, shape.kv_heads / layout.tp));
    const double keys =
        2 * rows * key_heads * shape.pair_width / static_cast<double>(shape.heads) * kElementBytes;
    traffic.context = (runs_again ? 4 : 3) * keys * (c - 1) * layers * m;
    traffic.context_seconds = traffic.context / links.over(layout.tp * layout.cp);
  }
  if (layout.ep > 1) {
    const auto mixed = static_cast<double>(shape.layers - shape.dense_layers);
    add_expert_traffic(question, links, stream / kElementBytes, mixed * held * m, traffic);
  }
  // Gradients overlap the last backward part, those of ZeRO-2 each backward part, ZeRO-3's gathers every micro-batch.
  const double share = held / c;
  const double backward = total.backward_seconds * share, both = total.seconds() * share;
  const double beside_data = layout.zero == 3   ? both * m
                             : layout.zero == 2 ? backward * m
                                                : backward;
  const double hides = question.system.hides_data ? beside_data : 0;
  const double sent =
      question.system.hides_pipeline ? traffic.pipeline_seconds / m : traffic.pipeline_seconds;
  const double seen = std::max(0.0, traffic.data_seconds - hides);
  const bool is_tuned = question.system.is_tuned();
  const double beside =
      is_tuned ? 0 : held_share(kCollectiveChannels, gpu) * (traffic.data_seconds - seen);
  traffic.exposed_seconds = seen + beside + traffic.tensor_seconds + sent +
                            seen_of_experts(question, gpu, traffic.expert_seconds, both * m, m) +
                            std::max(0.0, traffic.context_seconds - both * m);
  return traffic;
}

}  // namespace brrr::plan
