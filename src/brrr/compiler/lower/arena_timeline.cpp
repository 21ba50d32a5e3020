#include "brrr/compiler/lower/arena_timeline.h"

#include <algorithm>
#include <tuple>

#include "brrr/base/error.h"

namespace brrr::compiler {

std::vector<PlannedBuffer> planned_buffers(const KernelList& list, const MemoryPlan& plan) {
  std::vector<PlannedBuffer> all(list.buffers.size());
  std::vector<bool> seen(list.buffers.size(), false);
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const Kernel& kernel = list.kernels[k];
    const auto touch = [&](BufferId id, const std::string& made_by) {
      const size_t b = id.index();
      if (!seen[b])
        all[b] = {b,
                  plan.offsets[b],
                  list.buffers[b].bytes,
                  static_cast<int>(k),
                  static_cast<int>(k),
                  made_by,
                  kernel.phase};
      seen[b] = true;
      all[b].last = static_cast<int>(k);
    };
    for (const OperandRef& ref : kernel.inputs) touch(ref.buffer, kernel.name);
    for (const OperandRef& ref : kernel.outputs) touch(ref.buffer, kernel.name);
    if (kernel.workspace.valid()) touch(kernel.workspace, join_text("workspace of ", kernel.name));
  }
  std::vector<PlannedBuffer> planned;
  for (size_t b = 0; b < all.size(); ++b) {
    if (seen[b] && plan.offsets[b] >= 0 && list.buffers[b].bytes > 0) planned.push_back(all[b]);
  }
  std::sort(planned.begin(), planned.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.buffer) < std::tie(b.offset, b.buffer);
  });
  return planned;
}

std::vector<int64_t> bytes_over_time(const KernelList& list, const MemoryPlan& plan) {
  const std::vector<PlannedBuffer> buffers = planned_buffers(list, plan);  // by offset
  std::vector<int64_t> bytes(list.kernels.size(), 0), covered(list.kernels.size(), 0);
  for (const PlannedBuffer& buffer : buffers) {
    for (int k = buffer.first; k <= buffer.last; ++k) {
      int64_t& end = covered[static_cast<size_t>(k)];
      const int64_t own_end = buffer.offset + buffer.bytes;
      bytes[static_cast<size_t>(k)] += std::max<int64_t>(0, own_end - std::max(end, buffer.offset));
      end = std::max(end, own_end);
    }
  }
  return bytes;
}

}  // namespace brrr::compiler
