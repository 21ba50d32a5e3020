// Sizes of a model that waste a device, each with what a better one would gain: the products of a layer and the
// head, priced by tiles, waves and alignment, and attention, before and after the change.
#pragma once

#include <string>
#include <vector>

#include "brrr/hardware/hardware.h"
#include "brrr/nn/models.h"

namespace brrr::plan {

struct LintFinding {
  std::string what;    // "vocabulary 50257"
  std::string rule;    // why it wastes
  std::string change;  // "pad to 50304"
  double gain =
      0;  // share of the predicted time of products and attention that it saves; 0: none on one device
};

struct LintOptions {
  int64_t tokens = 16384;  // of a micro-batch
  int64_t tp = 1;
};
// The largest gain first; empty where nothing is wrong.
std::vector<LintFinding> lint(const ModelConfig& model, const hardware::GpuSpec& gpu,
                              const LintOptions& options = {});

// Forward FLOPs of the matmuls that lint prices. They come from a closed list, so that sizes can be tried of which there
// is no model; of dense transformers they are those of the traced step.
double linted_flops(const ModelConfig& model, int64_t tokens);

// The vocabulary rounded up to where products are quick: a multiple of 64.
int64_t whole_tiles_of_vocab(int64_t vocab);

// Share of the rate that a 16-bit product with this row length reaches: rows that start on 16 bytes are loaded
// whole, others by halves and elements.
double alignment_share(int64_t elements);

}  // namespace brrr::plan
