#include "brrr/train/saved_tensors.h"

#include "brrr/run/checkpoint.h"

namespace brrr::training {
namespace {

constexpr std::string_view kOptimizer = "optimizer.", kLive = "live.", kAverage = "average.",
                           kProgram = "program.", kAverageStep = "average.step";

// The values whose names begin with `prefix`, under the rest of their names.
std::vector<NamedTensor> below(const std::vector<NamedTensor>& values, std::string_view prefix) {
  std::vector<NamedTensor> found;
  for (const NamedTensor& each : values) {
    if (each.name.starts_with(prefix))
      found.push_back({each.name.substr(prefix.size()), each.tensor});
  }
  return found;
}

std::vector<NamedTensor> with_prefix(std::string_view prefix, std::vector<NamedTensor> tensors) {
  for (NamedTensor& each : tensors) each.name = join_text(prefix, each.name);
  return tensors;
}

void append(std::vector<NamedTensor>& to, const std::vector<NamedTensor>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

SavedTensors tensors_to_save(TrainingParts& parts, const Batch& batch) {
  SavedTensors saved;
  saved.optimizer = with_prefix(kOptimizer, parts.optimizer->states());
  const std::vector<NamedTensor> live = parts.model->named_parameters();
  if (!parts.average) {
    saved.model = live;
  } else {
    for (const NamedTensor& state : parts.average->states()) {
      if (state.name == kAverageStep) {
        saved.optimizer.push_back(state);
      } else {
        append(saved.model, below({state}, kAverage));
      }
    }
    append(saved.optimizer, with_prefix(kLive, live));
  }
  append(saved.optimizer, parts.step->program_states(batch));
  return saved;
}

SavedTensors copy_of(const SavedTensors& saved) {
  return {.model = runs::copy_tensors(saved.model),
          .optimizer = runs::copy_tensors(saved.optimizer)};
}

void load_saved(TrainingParts& parts, const SavedTensors& saved, const Batch& batch,
                const LoadSavedOptions& options) {
  const std::vector<NamedTensor> live = below(saved.optimizer, kLive);
  parts.model->load_state_dict(live.empty() ? saved.model : live);
  if (options.optimizer) parts.optimizer->load_states(below(saved.optimizer, kOptimizer));
  if (parts.average) {
    // Without averages before, they start at the weights.
    std::vector<NamedTensor> averages = with_prefix(kAverage, saved.model);
    for (const NamedTensor& each : saved.optimizer) {
      if (each.name == kAverageStep) averages.push_back(each);
    }
    parts.average->load_states(averages, {.allow_missing = live.empty()});
  }
  load_tensors(parts.step->program_states(batch),
               with_prefix(kProgram, below(saved.optimizer, kProgram)),
               {.allow_missing = true, .allow_unexpected = true});
}

}  // namespace brrr::training
