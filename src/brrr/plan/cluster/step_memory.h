// The memory of a planned step by what it is for, and what is alive beside that at the moments that can be its fullest.
//
// While the backward part of a layer runs, what the layers above it kept is gone and their gradients are there. Both
// change by as much from layer to layer, so the fullest instant is at the loss, in the last or first layer of a kind, or
// behind the first layer.
#pragma once

#include "brrr/runtime/stages.h"

namespace brrr::plan {

struct StepMemory {
  int64_t activations = 0;  // kept for the backward part, inside layers and around them
  int64_t weight_copies =
      0;               // of those: made of weights alone, so that all micro-batches share them
  int64_t logits = 0;  // kept and as wide as the vocabulary, at one time
  // Bytes beside those, before the updates, gradients of parameters left out:
  int64_t at_loss = 0;            // beside all that is kept, between the last layer's two parts
  std::vector<int64_t> in_layer;  // while one runs, either way: beside what it and those below keep
  int64_t at_end = 0;             // behind the first layer's backward part: all there is
  int64_t fullest = 0;            // at any instant: all there is
};
StepMemory step_memory(const runtime::PlannedProgram& program, int64_t vocab);

}  // namespace brrr::plan
