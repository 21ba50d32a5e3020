// Closes the settings that a person left open, from the data and the machine, and says what was chosen and
// why. A pure function: the same data and machine give the same run.
#pragma once

#include <string>
#include <vector>

#include "brrr/nn/models.h"
#include "brrr/run/config.h"
#include "brrr/train/machine.h"

namespace brrr::training {

struct DataFacts {
  int64_t train_tokens = 0, vocab = 0;
  int64_t documents = 0, longest_document = 0;  // tokens
  bool is_stories = false;
};

struct ResolvedRun {
  runs::TrainConfig config;  // nothing is open any more
  ModelConfig model;
  std::vector<std::string> reasons;  // a sentence for each choice
};
// Throws Error for settings that contradict each other or the data.
ResolvedRun resolve_sizes(const runs::TrainConfig& config, const DataFacts& data,
                          const MachineFacts& machine);

}  // namespace brrr::training
