// The seconds of a training step: kernels of a micro-batch on one device, the pipeline's bubble, the update, and
// traffic that stays visible.
#include <algorithm>

#include "brrr/plan/cluster/pipeline_stages.h"

namespace brrr::plan {
namespace {

// What tensor parallelism leaves whole: norms, residual sums, embeddings. Elementwise time of the whole model is
// R + S and of a share R + S / t, where S is split and R is not; so R = (t share - whole) / (t - 1).
double whole_part(double whole, double share, double degree) {
  return std::clamp((degree * share - whole) / (degree - 1), 0.0, share);
}

// Seconds of the fp8 copies that the backward part of a layer makes again, since ZeRO-3 does not keep them: amax of the
// weight in 16 bits and its copy, 2 + 2 + 1 bytes.
double copies_again(const RunQuestion& q, const StepCost& layer) {
  constexpr double kCopyBytes = 5;
  if (q.layout.zero < 3) return 0;
  return low_copies(q, layer) * kCopyBytes / copy_rate(hardware::find_gpu(q.gpu));
}

// Seconds of one micro-batch, what is sent left out: of all stages one after another, and of the stage that the others
// wait for. The ends of the model, embedding and head, are on the last stage.
struct StageSeconds {
  double all = 0, slowest = 0;
};

StageSeconds stage_seconds(const RunQuestion& q, const RunCost& cost,
                           const FrameworkSeconds& framework) {
  std::vector<double> of_layer;  // by kind
  const double beside = framework.weights + framework.parts + framework.casts;
  for (size_t kind = 0; kind < cost.shard.layers.size(); ++kind) {
    const StepCost& one = cost.shard.layers[kind].one;
    of_layer.push_back(micro_batch_seconds(q, cost.whole.layers[kind].one, one).both() +
                       copies_again(q, one) +
                       beside / static_cast<double>(cost.shard.layer_count()));
  }
  const double outside = cost.shard.outside.seconds() + framework.loss;
  StageSeconds seconds;
  for (const PipelineStage& stage : pipeline_stages(cost.shard, q.layout)) {
    double here = stage.is_last ? outside : 0;
    for (size_t kind = 0; kind < of_layer.size(); ++kind)
      here += static_cast<double>(stage.layers[kind]) * of_layer[kind];
    seconds.all += here;
    seconds.slowest = std::max(seconds.slowest, here);
  }
  return seconds;
}

}  // namespace

MicroBatchSeconds micro_batch_seconds(const RunQuestion& q, const StepCost& whole,
                                      const StepCost& shard) {
  MicroBatchSeconds seconds{shard.forward_seconds, shard.backward_seconds};
  if (q.layout.tp > 1 && q.layout.sequence_parallel) {
    const auto t = static_cast<double>(q.layout.tp);
    const double saved = 1 - 1 / t;
    seconds.forward -=
        saved * whole_part(whole.forward_other_seconds, shard.forward_other_seconds, t);
    seconds.backward -=
        saved * whole_part(whole.backward_other_seconds, shard.backward_other_seconds, t);
  }
  // Where scores lie in memory selective recomputation is there to drop them: attention runs again.
  const bool drops_scores = q.recompute == compiler::RematPolicy::selective &&
                            q.system.attention == AttentionMethod::unfused;
  if (drops_scores) seconds.backward += shard.forward_attention_seconds;
  seconds.backward += q.system.products_again * shard.forward_product_seconds;
  return seconds;
}

void predict_step(RunAnswer& a, const RunCost& cost) {
  const RunQuestion& q = a.question;
  const ParallelLayout& l = q.layout;
  const StepCost total = cost.shard.total();
  const auto m = static_cast<double>(a.micro_batches), p = static_cast<double>(l.pp);
  const double cp = static_cast<double>(l.cp), v = static_cast<double>(l.interleave);
  const FrameworkSeconds framework = framework_seconds(q, cost);
  const StageSeconds stages = stage_seconds(q, cost, framework);
  const double mean = stages.all / p / cp, slowest = stages.slowest / cp;
  const double update = update_seconds(q, cost, a.dp);
  // One stage runs m micro-batches; the others wait at the ends, for kernels and for all-reduces alike.
  const double reduces = a.traffic.tensor_seconds / m;
  const double work = m * slowest + (p - 1) * (mean + reduces) / v;
  a.step_seconds = std::max(work + update + a.traffic.exposed_seconds,
                            (m * framework.host + framework.host_update) *
                                largest_stage_share(cost.shard.layer_count(), l));
  // Micro-batches and the update are bound by different things; each in its own proportions.
  const auto sum = [](const double(&seconds)[cost::kRegimes]) {
    return std::max(seconds[0] + seconds[1] + seconds[2], 1e-30);
  };
  const double of_batch = m * mean / sum(total.in_regime),
               of_update = update / sum(total.update_in_regime);
  const auto in_regime = [&](cost::Regime regime) {
    const auto r = static_cast<size_t>(regime);
    return total.in_regime[r] * of_batch + total.update_in_regime[r] * of_update;
  };
  a.compute_seconds = in_regime(cost::Regime::compute);
  a.bandwidth_seconds = in_regime(cost::Regime::bandwidth);
  a.overhead_seconds = in_regime(cost::Regime::overhead);
  a.update_seconds = update;
  a.is_predicted = true;
}

}  // namespace brrr::plan
