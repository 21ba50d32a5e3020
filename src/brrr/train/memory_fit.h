// Whether a planned run fits into the memory and onto the disk that there are, and which settings would where
// it does not.
#pragma once

#include <string>

#include "brrr/train/plan.h"

namespace brrr::training {

struct Room {
  Bytes memory, disk;  // free ones
};

// What is lacking, and settings that fit; empty where the run has room.
std::string lack_of_room(const runs::TrainConfig& config, const ModelConfig& model,
                         const TrainPlan& plan, const Room& room);

}  // namespace brrr::training
