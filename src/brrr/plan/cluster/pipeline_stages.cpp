#include "brrr/plan/cluster/pipeline_stages.h"

#include <algorithm>
#include <numeric>

namespace brrr::plan {

int64_t PipelineStage::layer_count() const {
  return std::accumulate(layers.begin(), layers.end(), int64_t{0});
}

std::vector<PipelineStage> pipeline_stages(const std::vector<int64_t>& kinds,
                                           const ParallelLayout& layout) {
  const int64_t layers = std::accumulate(kinds.begin(), kinds.end(), int64_t{0});
  const int64_t stages = layout.pp * layout.interleave;
  const int64_t least = layers / stages, longer = layers % stages;
  std::vector<PipelineStage> devices(static_cast<size_t>(layout.pp));
  for (PipelineStage& device : devices) device.layers.assign(kinds.size(), 0);
  devices.front().is_first = devices.back().is_last = true;
  std::vector<int64_t> left = kinds;
  size_t kind = 0;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const bool is_longer = stage >= stages - 1 - longer && stage < stages - 1;
    PipelineStage& device = devices[static_cast<size_t>(stage % layout.pp)];
    for (int64_t missing = least + (is_longer ? 1 : 0); missing > 0;) {
      while (left[kind] == 0) ++kind;
      const int64_t taken = std::min(missing, left[kind]);
      device.layers[kind] += taken, left[kind] -= taken, missing -= taken;
    }
  }
  return devices;
}

std::vector<PipelineStage> pipeline_stages(const ModelCost& cost, const ParallelLayout& layout) {
  std::vector<int64_t> kinds;
  for (const ModelCost::Layers& kind : cost.layers) kinds.push_back(kind.count);
  return pipeline_stages(kinds, layout);
}

// The longer stages follow each other, so a device has at most ceil(their number / pp) of them.
double largest_stage_share(int64_t layers, const ParallelLayout& layout) {
  const int64_t stages = layout.pp * layout.interleave;
  const int64_t most =
      layout.interleave * (layers / stages) + (layers % stages + layout.pp - 1) / layout.pp;
  return static_cast<double>(most) / static_cast<double>(layers);
}

}  // namespace brrr::plan
