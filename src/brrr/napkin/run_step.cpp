// The seconds of a training step: kernels of a micro-batch on one device, the pipeline's bubble, the update, and
// traffic that stays visible.
#include <algorithm>

#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

// What tensor parallelism leaves whole: norms, residual sums, embeddings. Elementwise time of the whole model is
// R + S and of a share R + S / t, where S is split and R is not; so R = (t share - whole) / (t - 1).
double whole_part(double whole, double share, double degree) {
  return std::clamp((degree * share - whole) / (degree - 1), 0.0, share);
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
  const bool drops_scores =
      q.recompute == RematPolicy::selective && q.system.attention == AttentionMethod::unfused;
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
  const double layers =
      micro_batch_seconds(q, cost.whole.all_layers(), cost.shard.all_layers()).both();
  const FrameworkSeconds framework = framework_seconds(q, cost);
  const double outside = cost.shard.outside.seconds() + framework.loss;
  const double inside = layers + framework.weights + framework.parts;
  const double mean = (inside + outside) / p / cp, slowest = (inside / p + outside) / cp;
  const double update = update_seconds(q, cost, a.dp);
  // One stage runs m micro-batches; the others wait at the ends, for kernels and for all-reduces alike.
  const double reduces = a.traffic.tensor_seconds / m;
  const double work = m * slowest + (p - 1) * (mean + reduces) / v;
  a.step_seconds = std::max(work + update + a.traffic.exposed_seconds,
                            (m * framework.host + framework.host_update) / p);
  // Micro-batches and the update are bound by different things; each in its own proportions.
  const auto sum = [](const double(&seconds)[kRegimes]) {
    return std::max(seconds[0] + seconds[1] + seconds[2], 1e-30);
  };
  const double of_batch = m * mean / sum(total.in_regime),
               of_update = update / sum(total.update_in_regime);
  const auto in_regime = [&](Regime regime) {
    const auto r = static_cast<size_t>(regime);
    return total.in_regime[r] * of_batch + total.update_in_regime[r] * of_update;
  };
  a.compute_seconds = in_regime(Regime::compute);
  a.bandwidth_seconds = in_regime(Regime::bandwidth);
  a.overhead_seconds = in_regime(Regime::overhead);
  a.update_seconds = update;
  a.is_predicted = true;
}

}  // namespace brrr
