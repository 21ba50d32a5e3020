// The memory of one device in a training run: states by recipe and sharding, activations from the graph of the
// device's share of the model, at the pipeline stage that needs most.
#include <algorithm>

#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

constexpr double kContextBytes = 1.0 * (1LL << 30);     // of the driver and its libraries
constexpr double kCollectiveBytes = 1.0 * (1LL << 30);  // buffers of collective communication
constexpr double kBucketElements = 40e6;                // gradients that travel together

double optimizer_bytes(std::string_view name) {
  struct Row {
    std::string_view name;
    double bytes;
  };
  // States of a parameter in f32. Adafactor keeps a row and a column of a matrix: next to nothing.
  constexpr Row kRows[] = {{"adamw", 8},     {"adam", 8},       {"sgd", 0},         {"momentum", 4},
                           {"adagrad", 4},   {"rmsprop", 4},    {"lion", 4},        {"muon", 4},
                           {"adamw8bit", 2}, {"adamw-bf16", 4}, {"adafactor", 0.02}};
  std::string known;
  for (const Row& row : kRows) {
    if (row.name == name) return row.bytes;
    known += join_text(known.empty() ? "" : ", ", row.name);
  }
  fail("there is no optimizer \"", name, "\"; use one of ", known);
}

// Parameters that one device of a stage holds, before ZeRO.
struct StageParameters {
  double dense = 0, experts = 0;
};

StageParameters stage_parameters(const RunQuestion& question, const ModelCost& shard,
                                 int64_t stage) {
  const int64_t stages = question.layout.pp, layers = shard.layer_count();
  StageParameters held;
  int64_t first = layers / stages * stage, count = layers / stages;
  for (const ModelCost::Layers& kind : shard.layers) {
    const int64_t here = std::clamp<int64_t>(kind.count - first, 0, count);
    held.dense += static_cast<double>(here) * (kind.one.matrices + kind.one.vectors);
    held.experts += static_cast<double>(here) * kind.one.experts;
    first = std::max<int64_t>(0, first - kind.count);
    count -= here;
  }
  // A tied table lies on both ends of a pipeline.
  const bool is_tied = shard.outside.head_table < 0.5 * shard.outside.embedding;
  const bool is_last = stage == stages - 1;
  if (stage == 0) held.dense += shard.outside.embedding + shard.outside.vectors;
  if (is_last) held.dense += shard.outside.head_table;
  if (is_last && is_tied && stages > 1)
    held.dense += shard.outside.embedding - shard.outside.positions;
  held.experts /= static_cast<double>(question.layout.ep);
  return held;
}

// The largest layer and what ZeRO-3 has at hand of it: itself and the next, gathered.
double gathered_bytes(const RunQuestion& question, const ModelCost& shard,
                      const StateRecipe& recipe) {
  if (question.layout.zero < 3) return 0;
  double largest = shard.outside.embedding;
  for (const ModelCost::Layers& kind : shard.layers)
    largest = std::max(largest, kind.one.matrices + kind.one.vectors +
                                    kind.one.experts / static_cast<double>(question.layout.ep));
  return 2 * largest * recipe.params + largest * recipe.grads;
}

// Bytes of one layer's scores where attention is not fused: softmax 2, dropout's mask 1, its result 2.
double score_bytes(const RunQuestion& question) {
  if (question.system.attention != AttentionKernel::unfused || !question.model) return 0;
  const auto s = static_cast<double>(question.seq);
  return 5 * static_cast<double>(question.micro_batch * shape_of(*question.model).heads) * s * s /
         static_cast<double>(question.layout.tp);
}

// Micro-batches whose activations a stage holds at once under one-forward-one-backward.
double in_flight(const ParallelLayout& layout, int64_t stage, int64_t micro_batches) {
  const auto held = static_cast<double>(std::min(micro_batches, layout.pp - stage));
  if (layout.interleave <= 1 || layout.pp == 1) return held;
  const auto p = static_cast<double>(layout.pp), v = static_cast<double>(layout.interleave);
  return held * (1 + (p - 1) / (p * v));
}

}  // namespace

StateRecipe state_recipe(Precision precision, std::string_view optimizer, GradType grads) {
  const double states = optimizer_bytes(optimizer);
  if (precision == Precision::f32)
    return {.params = 4, .grads = 4, .master = 0, .optimizer = states};
  if (optimizer == "adamw-bf16") return {.params = 2, .grads = 2, .master = 0, .optimizer = states};
  return {
      .params = 2, .grads = grads == GradType::f32 ? 4.0 : 2.0, .master = 4, .optimizer = states};
}

RunMemory run_memory(const RunQuestion& question, const RunCost& cost, int64_t dp,
                     int64_t micro_batches) {
  const ParallelLayout& layout = question.layout;
  const StateRecipe recipe = state_recipe(question.precision, question.optimizer, question.grads);
  const auto ranks = static_cast<double>(dp * layout.cp);
  const double expert_ranks = std::max(1.0, ranks / static_cast<double>(layout.ep));
  // With sequence parallelism all that a layer keeps is split; without it the residual stream and the norms
  // stay whole, as in the traced share.
  const bool all_split = layout.sequence_parallel;
  const StepCost kept =
      all_split ? cost.whole.total() * (1 / static_cast<double>(layout.tp)) : cost.shard.total();
  const StepCost outside =
      all_split ? cost.whole.outside * (1 / static_cast<double>(layout.tp)) : cost.shard.outside;
  // Recomputation of any kind drops scores, which then exist for one layer at a time.
  const double scores = score_bytes(question);
  const double kept_scores = question.recompute == RematPolicy::none
                                 ? scores * static_cast<double>(cost.shard.layer_count())
                                 : 0;
  const double of_layers = kept.activations - outside.activations + kept_scores;
  const ModelCost& shard = cost.shard;
  RunMemory worst;
  for (int64_t stage = 0; stage < layout.pp; ++stage) {
    const StageParameters held = stage_parameters(question, shard, stage);
    const auto shared = [&](double bytes, int from_stage) {
      const bool is_split = layout.zero >= from_stage;
      return bytes *
             (held.dense / (is_split ? ranks : 1) + held.experts / (is_split ? expert_ranks : 1));
    };
    RunMemory memory{.params = shared(recipe.params, 3),
                     .grads = shared(recipe.grads, 2),
                     .master = shared(recipe.master, 1),
                     .optimizer = shared(recipe.optimizer, 1),
                     .stage = stage};
    const double flight = in_flight(layout, stage, micro_batches);
    const auto cp = static_cast<double>(layout.cp);
    memory.activations = flight * of_layers / static_cast<double>(layout.pp) / cp;
    const bool is_last = stage == layout.pp - 1;
    if (is_last) {
      memory.activations += outside.activations / cp;
      memory.logits = shard.outside.logits / cp;
    }
    memory.buffers = (is_last ? shard.total().transient : shard.all_layers().transient) / cp;
    if (dp * layout.cp > 1 && layout.zero < 3) memory.buffers += 2 * kBucketElements * recipe.grads;
    memory.buffers += gathered_bytes(question, shard, recipe);
    if (kept_scores == 0) memory.buffers += scores / cp;
    memory.overhead = kContextBytes + (question.count > 1 ? kCollectiveBytes : 0);
    if (memory.total() > worst.total()) worst = memory;
  }
  return worst;
}

}  // namespace brrr
