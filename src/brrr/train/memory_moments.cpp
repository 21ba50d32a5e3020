#include "brrr/train/memory_moments.h"

#include <algorithm>

#include "brrr/compiler/lower/arena_timeline.h"

namespace brrr::training {

std::vector<runs::MemoryMoment> memory_moments(const compiler::KernelList& list,
                                               const compiler::MemoryPlan& plan, size_t most) {
  const std::vector<int64_t> bytes = compiler::bytes_over_time(list, plan);
  const size_t count = std::min(bytes.size(), most);
  std::vector<runs::MemoryMoment> moments;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(bytes.size() * i / count),
               end = static_cast<std::ptrdiff_t>(bytes.size() * (i + 1) / count);
    const auto fullest = std::max_element(bytes.begin() + begin, bytes.begin() + end);
    const compiler::Kernel& kernel = list.kernels[static_cast<size_t>(fullest - bytes.begin())];
    moments.push_back({.phase = std::string(graph::phase_name(kernel.phase)), .bytes = *fullest});
  }
  return moments;
}

}  // namespace brrr::training
