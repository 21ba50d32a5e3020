// How a run learns, judged from its losses on training and validation data: too little, well, or too much
// of the training set itself; since when; what could help and what could not.
//
// The rules, on smoothed curves and beyond their noise:
//   diverging     the training loss rises from its lowest, or is no number any more
//   overfitting   the validation loss rises from its lowest while the training loss falls; or it stands
//                 still, with a gap, while the training loss falls
//   underfitting  no gap, and the validation loss still falls; or it stands still after far more tokens
//                 than the model has room for
//   healthy       none of these
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "brrr/run/learning_curves.h"
#include "brrr/run/run_log.h"

namespace brrr::runs {

enum class LearningKind : uint8_t { too_early, underfitting, healthy, overfitting, diverging };
std::string_view learning_name(LearningKind kind);  // "too early to say", "underfitting", ...

struct LearningRegime {
  LearningKind kind = LearningKind::too_early;
  int64_t since_step = 0;  // overfitting, diverging: the last step at which all was well; else 0
  // At the end, smoothed; NaN where there is nothing to judge.
  double train_loss = 0, validation_loss = 0;
  double best_validation_loss = 0;
  int64_t best_step = 0;
  double noise = 0;                        // of one validation loss, one standard deviation
  bool regularisation_could_help = false;  // whether there is a gap for it to close

  std::string what = {};               // "Overfitting since step 400: ..."
  std::string why = {};                // the numbers behind it
  std::string regularisation = {};     // whether it could help, or why not
  std::string capacity = {};           // parameters against samples
  std::vector<std::string> next = {};  // what to do

  double gap() const { return validation_loss - train_loss; }
};

LearningRegime judge_learning(const RunLog& run);

// All sentences, one a line, what to do next as a list.
std::string to_text(const LearningRegime& regime);

}  // namespace brrr::runs
