// The memory of one device in a training run: states by recipe and sharding, activations from the graph of the
// device's share of the model, at the pipeline stage and the moment of a step that need most. The update needs no more
// than the end of the backward part: states and gradients.
#include <algorithm>

#include "brrr/plan/cluster/pipeline_stages.h"
#include "brrr/plan/cluster/planned_optimizer.h"

namespace brrr::plan {
namespace {

constexpr double kContextBytes = 1.0 * (1LL << 30);     // of the driver and its libraries
constexpr double kCollectiveBytes = 1.0 * (1LL << 30);  // buffers of collective communication
constexpr double kBucketElements = 40e6;                // gradients that travel together

// Parameters that one device holds, before ZeRO, and the bytes of the optimizer's state for them, in f32.
struct HeldParameters {
  double dense = 0, experts = 0;
  double dense_states = 0, expert_states = 0;
  HeldParameters& operator+=(const HeldParameters& other) {
    dense += other.dense, experts += other.experts;
    dense_states += other.dense_states, expert_states += other.expert_states;
    return *this;
  }
};

HeldParameters of_layers(const ModelCost::Layers& kind, int64_t count) {
  const auto times = static_cast<double>(count);
  return {.dense = times * (kind.one.matrices + kind.one.vectors),
          .experts = times * kind.one.experts,
          .dense_states = times * (kind.one.matrix_states + kind.one.vector_states),
          .expert_states = times * kind.one.expert_states};
}

// Whose gradients are the first to come: the head. A tied one is the table of tokens.
HeldParameters of_head(const ModelCost& shard) {
  const bool is_tied = shard.outside.head_table < 0.5 * shard.outside.embedding;
  const StepCost& outside = shard.outside;
  const double table = is_tied ? outside.embedding - outside.positions : 0,
               table_states = is_tied ? outside.embedding_states - outside.position_states : 0;
  return {.dense = outside.head_table + table, .dense_states = outside.head_states + table_states};
}

HeldParameters of_stage(const ModelCost& shard, const PipelineStage& stage) {
  HeldParameters held;
  for (size_t kind = 0; kind < stage.layers.size(); ++kind)
    held += of_layers(shard.layers[kind], stage.layers[kind]);
  const StepCost& outside = shard.outside;
  if (stage.is_first)
    held += {.dense = outside.embedding + outside.vectors,
             .dense_states = outside.embedding_states + outside.vector_states};
  // A tied table lies on both ends of a pipeline.
  if (stage.is_last)
    held += stage.is_first
                ? HeldParameters{.dense = outside.head_table, .dense_states = outside.head_states}
                : of_head(shard);
  return held;
}

// The largest layer and what ZeRO-3 has at hand of it: itself and the next, gathered.
double gathered_bytes(const RunQuestion& question, const ModelCost& shard,
                      const StateRecipe& recipe) {
  if (question.layout.zero < 3) return 0;
  double largest = shard.outside.embedding, copies = 0;
  for (const ModelCost::Layers& kind : shard.layers) {
    largest = std::max(largest, kind.one.matrices + kind.one.vectors + kind.one.experts);
    copies = std::max(copies, low_copies(question, kind.one));
  }
  return 2 * (largest * recipe.params + copies) + largest * recipe.grads;
}

// Bytes of one layer's scores where attention is not fused: softmax 2, dropout's mask 1, its result 2.
double score_bytes(const RunQuestion& question) {
  if (question.system.attention != AttentionMethod::unfused || !question.model) return 0;
  const auto s = static_cast<double>(question.seq);
  return 5 * static_cast<double>(question.micro_batch * shape_of(*question.model).heads) * s * s /
         static_cast<double>(question.layout.tp);
}

// Micro-batches whose activations a stage holds at once under one-forward-one-backward.
double in_flight(const ParallelLayout& layout, int64_t stage, int64_t micro_batches) {
  const auto held = static_cast<double>(std::min(micro_batches, layout.pp - stage));
  if (layout.interleave <= 1 || layout.pp == 1) return held;
  const auto p = static_cast<double>(layout.pp), v = static_cast<double>(layout.interleave);
  return std::min(static_cast<double>(micro_batches), held * (1 + (p - 1) / (p * v)));
}

// Logits of a micro-batch: a chunk of them, or all that a framework has at the loss.
double logit_bytes(const RunQuestion& question, const ModelCost& shard) {
  if (question.system.is_tuned() || !question.model) return shard.outside.logits;
  const auto tokens = static_cast<double>(question.micro_batch * question.seq),
             vocab = static_cast<double>(shape_of(*question.model).vocab);
  return framework_logit_bytes(question) * tokens * vocab / static_cast<double>(question.layout.tp);
}

// Bytes that a layer of each kind keeps on one device, and what the ends do. With sequence parallelism all that a
// layer keeps is split; without it the residual stream and the norms stay whole, as in the traced share.
struct KeptBytes {
  std::vector<double> layer;   // by kind, of a micro-batch
  std::vector<double> copies;  // of weights, by kind: all micro-batches read the same
  double outside = 0, logits = 0;
};

KeptBytes kept_bytes(const RunQuestion& question, const RunCost& cost, double kept_scores) {
  const ParallelLayout& layout = question.layout;
  const auto cp = static_cast<double>(layout.cp);
  const bool all_split = layout.sequence_parallel;
  const ModelCost& from = all_split ? cost.whole : cost.shard;
  const double share = 1 / cp / (all_split ? static_cast<double>(layout.tp) : 1);
  const auto of_batch = [&](const StepCost& cost_of) {
    return share * (cost_of.activations - cost_of.weight_copies);
  };
  KeptBytes kept{
      .layer = {},
      .copies = {},
      .outside = of_batch(from.outside) + (layout.zero == 3 ? 0 : cost.shard.outside.weight_copies),
      .logits = logit_bytes(question, cost.shard) / cp};
  for (const ModelCost::Layers& kind : from.layers)
    kept.layer.push_back(of_batch(kind.one) + kept_scores / cp);
  for (const ModelCost::Layers& kind : cost.shard.layers)
    // ZeRO-3 gathers weights again, and makes their copies again from those.
    kept.copies.push_back(layout.zero == 3 ? 0 : low_copies(question, kind.one));
  return kept;
}

// An instant of a step that may be its fullest: what is alive of a micro-batch's, and which gradients there are when
// nothing is accumulated.
struct Moment {
  double activations = 0, logits = 0, beside = 0;
  HeldParameters grads;
};

// At the loss, in the last and in the first layer of every kind, and behind the first layer; beside them what further
// micro-batches keep that are under way.
std::vector<Moment> moments_of(const ModelCost& shard, const PipelineStage& stage,
                               const KeptBytes& kept, double flight, const ParallelLayout& layout) {
  const auto cp = static_cast<double>(layout.cp);
  double of_one = 0, copies = 0;
  for (size_t kind = 0; kind < stage.layers.size(); ++kind) {
    of_one += static_cast<double>(stage.layers[kind]) * kept.layer[kind];
    copies += static_cast<double>(stage.layers[kind]) * kept.copies[kind];
  }
  // Copies of weights go with the layer that read them last, and stay while other micro-batches are under way.
  const double stays = flight > 1 ? 1 : 0;
  const double others = (flight - 1) * of_one + stays * copies;
  HeldParameters made = stage.is_last ? of_head(shard) : HeldParameters{};
  std::vector<Moment> moments;
  if (stage.is_last)
    moments.push_back({.activations = flight * of_one + copies + kept.outside,
                       .logits = kept.logits,
                       .beside = shard.at_loss / cp,
                       .grads = made});
  double below = of_one + (1 - stays) * copies;  // kept by layers of this kind and before it
  for (size_t i = stage.layers.size(); i-- > 0;) {
    if (stage.layers[i] == 0) continue;
    const ModelCost::Layers& kind = shard.layers[i];
    const int64_t further = stage.layers[i] - 1;
    const double of_layer = kept.layer[i] + (1 - stays) * kept.copies[i];
    made += of_layers(kind, 1);
    moments.push_back({.activations = others + below, .beside = kind.beside / cp, .grads = made});
    made += of_layers(kind, further);
    below -= static_cast<double>(further) * of_layer;
    moments.push_back({.activations = others + below, .beside = kind.beside / cp, .grads = made});
    below -= of_layer;
  }
  moments.push_back({.activations = others,
                     .beside = stage.is_first ? shard.at_end / cp : 0,
                     .grads = of_stage(shard, stage)});
  return moments;
}

}  // namespace

StateRecipe state_recipe(compiler::Precision precision, std::string_view optimizer,
                         GradType grads) {
  const PlannedOptimizer planned = planned_optimizer(optimizer);
  const double states = matrix_state_bytes(planned);
  if (precision == compiler::Precision::f32)
    return {.params = 4, .grads = 4, .master = 0, .optimizer = states};
  if (!planned.has_master) return {.params = 2, .grads = 2, .master = 0, .optimizer = states};
  return {
      .params = 2, .grads = grads == GradType::f32 ? 4.0 : 2.0, .master = 4, .optimizer = states};
}

RunMemory run_memory(const RunQuestion& question, const RunCost& cost, int64_t dp,
                     int64_t micro_batches) {
  const ParallelLayout& layout = question.layout;
  const StateRecipe recipe = state_recipe(question.precision, question.optimizer, question.grads);
  const double state_share = planned_optimizer(question.optimizer).state_share;
  const auto ranks = static_cast<double>(dp * layout.cp);
  const double expert_ranks = std::max(1.0, ranks / static_cast<double>(layout.ep));
  const auto shared = [&](const HeldParameters& held, double bytes, int from_stage) {
    const bool is_split = layout.zero >= from_stage;
    return bytes *
           (held.dense / (is_split ? ranks : 1) + held.experts / (is_split ? expert_ranks : 1));
  };
  // Recomputation of any kind drops scores, which then exist for one layer at a time.
  const double scores = score_bytes(question);
  const bool keeps_scores = question.recompute == compiler::RematPolicy::none;
  const KeptBytes kept = kept_bytes(question, cost, keeps_scores ? scores : 0);
  ModelCost shard = cost.shard;
  for (ModelCost::Layers& kind : shard.layers) kind.beside += keeps_scores ? 0 : scores;
  RunMemory worst;
  const std::vector<PipelineStage> stages = pipeline_stages(shard, layout);
  for (int64_t s = 0; s < layout.pp; ++s) {
    const PipelineStage& stage = stages[static_cast<size_t>(s)];
    const HeldParameters held = of_stage(shard, stage);
    const double in_buckets = std::min(2 * kBucketElements, held.dense + held.experts);
    const double buckets = ranks > 1 && layout.zero < 3 ? in_buckets * recipe.grads : 0;
    const double flight = in_flight(layout, s, micro_batches);
    for (const Moment& moment : moments_of(shard, stage, kept, flight, layout)) {
      // Sums over micro-batches are there from the first to the last; of one they come as activations go.
      const HeldParameters& grads = micro_batches > 1 ? held : moment.grads;
      const RunMemory memory{
          .params = shared(held, recipe.params, 3),
          .grads = shared(grads, recipe.grads, 2),
          .master = shared(held, recipe.master, 1),
          .optimizer = state_share *
                       shared({.dense = held.dense_states, .experts = held.expert_states}, 1, 1),
          .activations = moment.activations,
          .logits = moment.logits,
          .buffers = moment.beside + buckets + gathered_bytes(question, shard, recipe),
          .overhead = kContextBytes + (question.count > 1 ? kCollectiveBytes : 0),
          .stage = s};
      if (memory.total() > worst.total()) worst = memory;
    }
  }
  return worst;
}

}  // namespace brrr::plan
