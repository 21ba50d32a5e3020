// Which tensors of a run a checkpoint keeps, and the way back into a run that goes on.
//
// model.safetensors has the weights that others should use: the averages, where the run keeps them. The rest
// is for going on: the optimizer's states, the live weights where they are not the model's, and what the
// compiled step keeps for itself (scales of low precision).
#pragma once

#include "brrr/train/setup.h"

namespace brrr::training {

struct SavedTensors {
  std::vector<NamedTensor> model, optimizer;
};
// The run's own tensors, which the next step changes. `batch` is one like those of training.
SavedTensors tensors_to_save(TrainingParts& parts, const Batch& batch);
// Everything as it is now.
SavedTensors copy_of(const SavedTensors& saved);

struct LoadSavedOptions {
  bool optimizer = true;  // false: its states stay as they are, for a run that changes the rule
};
// Throws Error, before anything is written, where names or shapes do not fit.
void load_saved(TrainingParts& parts, const SavedTensors& saved, const Batch& batch,
                const LoadSavedOptions& options = {});

}  // namespace brrr::training
