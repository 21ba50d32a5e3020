#include "brrr/cost/traffic.h"

#include <algorithm>
#include <map>

namespace brrr::cost {
namespace {

constexpr double kNeverUsed = 1e18;

// Bytes of an operand that are there: axes that repeat (stride 0) count once.
int64_t present_bytes(const compiler::OperandRef& ref) {
  Shape shape = ref.layout.shape;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (ref.layout.strides[axis] == 0) shape[axis] = std::min<int64_t>(1, shape[axis]);
  }
  return storage_bytes(ref.dtype, numel(shape));
}

int64_t sum_of_bytes(const std::vector<compiler::OperandRef>& refs) {
  int64_t total = 0;
  for (const compiler::OperandRef& ref : refs) total += present_bytes(ref);
  return total;
}

// The part of an operand that the kernel touches: an embedding reads some rows of its table.
double touched_part(int64_t cost_bytes, const std::vector<compiler::OperandRef>& refs) {
  const int64_t present = sum_of_bytes(refs);
  return present == 0
             ? 0
             : std::min(1.0, static_cast<double>(cost_bytes) / static_cast<double>(present));
}

// When each byte of the arena was touched last, as ranges.
class Arena {
 public:
  // The distance of [begin, end) at time `now`, averaged over its bytes; from here on it was touched now.
  double touch(int64_t begin, int64_t end, double now) {
    cut(begin);
    cut(end);
    double weighted = 0;
    int64_t known = 0;
    const auto first = ranges_.lower_bound(begin);
    auto range = first;
    for (; range != ranges_.end() && range->first < end; ++range) {
      const int64_t bytes = range->second.end - range->first;
      weighted += static_cast<double>(bytes) * (now - range->second.time);
      known += bytes;
    }
    ranges_.erase(first, range);
    ranges_[begin] = {end, now};
    return known == 0 ? kNeverUsed : weighted / static_cast<double>(known);
  }

 private:
  struct Range {
    int64_t end;
    double time;
  };
  // Makes `at` a border between ranges.
  void cut(int64_t at) {
    auto next = ranges_.upper_bound(at);
    if (next == ranges_.begin()) return;
    auto& [begin, range] = *std::prev(next);
    if (begin >= at || range.end <= at) return;
    ranges_[at] = range;
    range.end = at;
  }
  std::map<int64_t, Range> ranges_;
};

class TrafficTracer {
 public:
  TrafficTracer(const compiler::KernelList& list, const compiler::MemoryPlan& plan)
      : list_(list), plan_(plan), last_(list.buffers.size(), -kNeverUsed) {}

  std::vector<std::vector<Touch>> step() {
    std::vector<std::vector<Touch>> all;
    for (const compiler::Kernel& kernel : list_.kernels) {
      std::vector<Touch> touches;
      const double began = now_;
      const double read = touched_part(kernel.cost.bytes_read, kernel.inputs),
                   written = touched_part(kernel.cost.bytes_written, kernel.outputs);
      for (const compiler::OperandRef& ref : kernel.inputs) add(ref, read, began, touches);
      for (const compiler::OperandRef& ref : kernel.outputs) add(ref, written, began, touches);
      all.push_back(std::move(touches));
    }
    return all;
  }

 private:
  void add(const compiler::OperandRef& ref, double part, double began,
           std::vector<Touch>& touches) {
    const auto bytes = static_cast<double>(present_bytes(ref)) * part;
    if (bytes == 0) return;
    touches.push_back({.bytes = bytes, .distance = std::min(kNeverUsed, distance(ref, began))});
    now_ += bytes;
  }

  double distance(const compiler::OperandRef& ref, double began) {
    const size_t buffer = ref.buffer.index();
    const int64_t offset = plan_.offsets[buffer];
    if (offset >= 0) {
      const int64_t begin = offset + storage_bytes(ref.dtype, ref.layout.offset),
                    end =
                        std::min(begin + present_bytes(ref), offset + list_.buffers[buffer].bytes);
      if (end > begin) return arena_.touch(begin, end, began);
    }
    return began - std::exchange(last_[buffer], began);
  }

  const compiler::KernelList& list_;
  const compiler::MemoryPlan& plan_;
  Arena arena_;
  std::vector<double> last_;  // by buffer outside the arena
  double now_ = 0;            // bytes touched so far
};

}  // namespace

std::vector<std::vector<Touch>> trace_traffic(const compiler::KernelList& list,
                                              const compiler::MemoryPlan& plan) {
  TrafficTracer tracer(list, plan);
  tracer.step();  // the step before
  return tracer.step();
}

}  // namespace brrr::cost
