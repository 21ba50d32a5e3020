// How the layers of a model lie over the devices of a pipeline.
//
// With p devices and v virtual stages on each, L layers make p v stages in order, and device i has the stages i, i + p,
// i + 2 p, ... A stage has L / (p v) layers or one more. The last stage has the head and the first one keeps the most
// micro-batches, so the longer stages end just before the last one: 126 layers over 16 stages are 7, 8, ..., 8, 7, as
// Llama 3 405B was trained.
#pragma once

#include <cstdint>
#include <vector>

#include "brrr/plan/cluster/run_question.h"

namespace brrr::plan {

// What one device has.
struct PipelineStage {
  std::vector<int64_t> layers;  // by kind, from the first layer on
  bool is_first = false, is_last = false;
  int64_t layer_count() const;
};

// By device; `kinds` are the numbers of layers of each kind, from the first layer on.
std::vector<PipelineStage> pipeline_stages(const std::vector<int64_t>& kinds,
                                           const ParallelLayout& layout);
std::vector<PipelineStage> pipeline_stages(const ModelCost& cost, const ParallelLayout& layout);

// The most layers that a device has over all layers; 1 / pp where stages are even.
double largest_stage_share(int64_t layers, const ParallelLayout& layout);

}  // namespace brrr::plan
