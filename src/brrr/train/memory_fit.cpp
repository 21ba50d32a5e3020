#include "brrr/train/memory_fit.h"

#include <fmt/format.h>

#include "brrr/base/error.h"

namespace brrr::training {
namespace {

Bytes memory_needed(const runs::TrainConfig& config, const ModelConfig& model,
                    const compiler::Target& target) {
  const hardware::Rates any = hardware::rates_from_peaks(
      "any", {.flops_per_second = 1e11, .bytes_per_second = 1e10, .launch_seconds = 1e-6});
  return plan_training(config, model, target, any, Bytes()).memory();
}

// Numbers of equal parts that `rows` are cut into: whole, in halves while that goes, and row by row.
std::vector<int64_t> ways_to_cut(int64_t rows, int64_t most) {
  std::vector<int64_t> ways{1};
  while (rows % (2 * ways.back()) == 0) ways.push_back(2 * ways.back());
  if (ways.back() != rows) ways.push_back(rows);
  std::erase_if(ways, [&](int64_t parts) { return parts > most; });
  return ways;
}

// The first of the settings, as the batch is cut into more and smaller micro-batches, that needs no more than
// `memory`: updates are of as many rows, and each size is tried with layers computed again as well. Empty
// where there are none.
std::string smaller_batch(const runs::TrainConfig& config, const ModelConfig& model,
                          const compiler::Target& target, Bytes memory) {
  runs::TrainConfig tried = config;
  const int64_t rows = runs::resolved(config.train.batch);
  for (const int64_t parts : ways_to_cut(rows, runs::kMostMicroBatches / config.train.accumulate)) {
    tried.train.batch = rows / parts;
    tried.train.accumulate = config.train.accumulate * parts;
    for (const compiler::RematPolicy policy :
         {config.train.recompute, compiler::RematPolicy::full}) {
      tried.train.recompute = policy;
      const Bytes needed = memory_needed(tried, model, target);
      if (needed <= memory)
        return fmt::format("--batch {} --accumulate {} --recompute {} needs {}", rows / parts,
                           tried.train.accumulate, compiler::policy_name(policy), to_text(needed));
    }
  }
  return {};
}

// The same model with as many layers as fit when rows go through it one by one; empty where not even one
// layer does.
std::string fewer_layers(const runs::TrainConfig& config, const ModelConfig& model,
                         const compiler::Target& target, Bytes memory) {
  runs::TrainConfig tried = config;
  tried.train.accumulate = config.train.accumulate * runs::resolved(config.train.batch);
  if (tried.train.accumulate > runs::kMostMicroBatches) return {};
  tried.train.batch = 1;
  tried.train.recompute = compiler::RematPolicy::full;
  const auto needed_by = [&](int64_t layers) {
    ModelConfig shorter = model;
    shorter.set("layers", layers);
    return memory_needed(tried, shorter, target);
  };
  int64_t fits = 0, too_many = runs::resolved(config.model.layers);
  Bytes needed;
  while (too_many - fits > 1) {
    const int64_t between = fits + (too_many - fits) / 2;
    const Bytes there = needed_by(between);
    (there <= memory ? fits : too_many) = between;
    if (fits == between) needed = there;
  }
  if (fits == 0) return {};
  return fmt::format("--layers {} --batch 1 --accumulate {} --recompute full needs {}", fits,
                     tried.train.accumulate, to_text(needed));
}

std::string memory_words(const runs::TrainConfig& config, const ModelConfig& model,
                         const compiler::Target& target, Bytes memory) {
  const std::string batch = smaller_batch(config, model, target, memory);
  if (!batch.empty()) return join_text("this fits, with updates of as many rows: ", batch);
  const std::string layers = fewer_layers(config, model, target, memory);
  if (!layers.empty())
    return join_text("no smaller batch fits: choose a smaller model; of this width ", layers);
  return "not even one layer fits: choose a smaller --batch, or a smaller model with --width";
}

// All that a plan counts but the checkpoints that are kept.
Bytes disk_needed(const runs::TrainConfig& config, const TrainPlan& plan, int64_t kept) {
  return plan.disk - plan.checkpoint * (config.checkpoint.keep - kept);
}

std::string disk_words(const runs::TrainConfig& config, const TrainPlan& plan, Bytes disk) {
  for (int64_t kept = config.checkpoint.keep - 1; kept >= 1; --kept) {
    const Bytes needed = disk_needed(config, plan, kept);
    if (needed <= disk) return fmt::format("this fits: --keep {} needs {}", kept, to_text(needed));
  }
  return fmt::format(
      "even --keep 1 needs {}: name another place with --out, or choose a smaller "
      "model with --width or --layers",
      to_text(disk_needed(config, plan, 1)));
}

}  // namespace

std::string lack_of_room(const runs::TrainConfig& config, const ModelConfig& model,
                         const TrainPlan& plan, const Room& room) {
  if (plan.memory() > room.memory)
    return join_text("the run needs ", plan.memory(), " of memory (", plan.states,
                     " for parameters and optimizer, ", plan.arena, " inside a step, ",
                     plan.snapshot, " while a checkpoint is written) and ", room.memory,
                     " are free; ", memory_words(config, model, plan.target, room.memory));
  if (plan.disk > room.disk)
    return join_text("the run needs about ", plan.disk, " on disk (", plan.checkpoint,
                     " a checkpoint, ", config.checkpoint.keep,
                     " are kept beside the best and the one that is being written) and ", room.disk,
                     " are free; ", disk_words(config, plan, room.disk));
  return {};
}

}  // namespace brrr::training
