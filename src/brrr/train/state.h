// state.json of a checkpoint: where a run stands besides its tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "brrr/kernels/cuda/gemm/gemm_choices.h"
#include "brrr/run/config.h"
#include "brrr/train/guard.h"

namespace brrr::training {

struct TrainingState {
  static constexpr int kVersion = 1;

  int64_t step =
      0;  // updates made; also the position in the data, since a batch follows from its step
  std::string brrr_version;
  runs::TrainConfig config;    // every setting: sizes, seeds, precision and passes included
  std::string tokenizer_hash;  // of the tokens that it was trained on
  GuardHistory guard;
  std::optional<double> best_loss;  // on validation data
  int64_t best_step = 0;
  double seconds = 0;  // spent in steps
  kernels::AlgorithmChoices algorithms =
      {};  // of matrix products on a GPU: part of what the bits depend on
};

std::string to_json(const TrainingState& state);
// Throws Error, naming `origin`, on anything but a complete state of this version.
TrainingState parse_training_state(std::string_view json, const std::string& origin);

// What going on with other settings means: for each setting that changed, what stays exact and what does
// not. Throws Error for a change that the saved weights do not allow.
std::vector<std::string> describe_changes(const runs::TrainConfig& before,
                                          const runs::TrainConfig& now);

}  // namespace brrr::training
