// The memory of a planned step by what it is for, at its fullest instant.
#pragma once

#include "brrr/runtime/stages.h"

namespace brrr {

struct StepMemory {
  int64_t activations = 0;  // kept for the backward part, inside layers and around them
  int64_t logits = 0;       // kept and as wide as the vocabulary, at one time
  int64_t gradients = 0;    // made by the backward part for the update
  int64_t transient = 0;  // the rest of the fullest instant before the updates, gradients left out
};
StepMemory step_memory(const PlannedProgram& program, int64_t vocab);

}  // namespace brrr
