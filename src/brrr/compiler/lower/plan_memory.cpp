#include "brrr/compiler/lower/plan_memory.h"

#include <algorithm>
#include <numeric>

namespace brrr::compiler {
namespace {

// A piece of the arena while kernels [first, last] run; several buffers when they overwrite each other.
struct Block {
  int64_t bytes = 0;
  int first = -1, last = -1;
  int64_t offset = -1;
};

class Planner {
 public:
  Planner(const KernelList& list, const PlanOptions& options)
      : list_(list),
        options_(options),
        blocks_(list.buffers.size()),
        block_of_(list.buffers.size()) {
    std::iota(block_of_.begin(), block_of_.end(), 0);
  }

  MemoryPlan run() {
    find_lifetimes();
    if (options_.share) overwrite_dead_operands();
    place();
    MemoryPlan plan;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = blocks_[root(b)];
      plan.offsets.push_back(is_planned(b) ? block.offset : -1);
      if (is_planned(b)) plan.arena_bytes = std::max(plan.arena_bytes, block.offset + block.bytes);
    }
    plan.lower_bound = largest_live_set();
    return plan;
  }

 private:
  int64_t aligned(int64_t bytes) const {
    return (bytes + options_.alignment - 1) / options_.alignment * options_.alignment;
  }
  size_t root(size_t b) const {
    while (block_of_[b] != b) b = block_of_[b];
    return b;
  }
  bool is_planned(size_t b) const {
    return list_.buffers[b].place == Place::temporary && list_.buffers[b].bytes > 0 &&
           blocks_[root(b)].first >= 0;
  }

  void find_lifetimes() {
    for (size_t b = 0; b < blocks_.size(); ++b) blocks_[b].bytes = aligned(list_.buffers[b].bytes);
    for (size_t k = 0; k < list_.kernels.size(); ++k) {
      const Kernel& kernel = list_.kernels[k];
      const auto touch = [&](BufferId id) {
        Block& block = blocks_[id.index()];
        if (block.first < 0) block.first = static_cast<int>(k);
        block.last = static_cast<int>(k);
      };
      for (const OperandRef& ref : kernel.inputs) touch(ref.buffer);
      for (const OperandRef& ref : kernel.outputs) touch(ref.buffer);
      if (kernel.workspace.valid()) touch(kernel.workspace);
    }
  }

  // Every result that may takes the place of an operand that dies with its kernel.
  void overwrite_dead_operands() {
    for (size_t k = 0; k < list_.kernels.size(); ++k) {
      const Kernel& kernel = list_.kernels[k];
      for (size_t o = 0; o < kernel.outputs.size(); ++o) {
        if (!is_planned(kernel.outputs[o].buffer.index())) continue;
        for (size_t i = 0; i < kernel.inputs.size(); ++i) {
          if (may_overwrite(kernel, i, o) && try_overwrite(kernel, static_cast<int>(k), i, o))
            break;
        }
      }
    }
  }

  bool try_overwrite(const Kernel& kernel, int k, size_t i, size_t o) {
    const OperandRef &input = kernel.inputs[i], &output = kernel.outputs[o];
    if (!is_planned(input.buffer.index())) return false;
    const size_t old = root(input.buffer.index()), made = root(output.buffer.index());
    if (old == made || blocks_[old].last != k || blocks_[made].first != k) return false;
    if (blocks_[made].last == k) return false;  // nobody reads it: two such must not share
    if (input.layout != output.layout || input.dtype != output.dtype ||
        blocks_[old].bytes != blocks_[made].bytes)
      return false;
    // Another operand may show the same bytes, and be read in another order or later.
    for (size_t other = 0; other < kernel.inputs.size(); ++other) {
      if (other == i || root(kernel.inputs[other].buffer.index()) != old) continue;
      if (kernel.inputs[other].layout != input.layout || !may_overwrite(kernel, other, o))
        return false;
    }
    blocks_[old].last = blocks_[made].last;
    block_of_[made] = old;
    return true;
  }

  // The largest first, each as low as it fits beside those alive at the same time.
  void place() {
    std::vector<size_t> order;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (block_of_[b] == b && is_planned(b)) order.push_back(b);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    std::vector<size_t> placed;  // by offset
    for (size_t b : order) {
      Block& block = blocks_[b];
      int64_t offset = 0;
      for (size_t p : placed) {
        const Block& other = blocks_[p];
        const bool meet =
            !options_.share || (block.first <= other.last && other.first <= block.last);
        if (!meet || offset + block.bytes <= other.offset) continue;
        offset = std::max(offset, other.offset + other.bytes);
      }
      block.offset = offset;
      const auto behind = std::upper_bound(
          placed.begin(), placed.end(), b,
          [&](size_t x, size_t y) { return blocks_[x].offset < blocks_[y].offset; });
      placed.insert(behind, b);
    }
  }

  int64_t largest_live_set() const {
    int64_t largest = 0;
    std::vector<int64_t> change(list_.kernels.size() + 1, 0);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (block_of_[b] != b || !is_planned(b)) continue;
      change[static_cast<size_t>(blocks_[b].first)] += blocks_[b].bytes;
      change[static_cast<size_t>(blocks_[b].last) + 1] -= blocks_[b].bytes;
    }
    int64_t live = 0;
    for (int64_t step : change) largest = std::max(largest, live += step);
    return largest;
  }

  const KernelList& list_;
  const PlanOptions& options_;
  std::vector<Block> blocks_;     // by buffer; only roots count
  std::vector<size_t> block_of_;  // by buffer: the one whose bytes it took over, or itself
};

}  // namespace

MemoryPlan plan_memory(const KernelList& list, const PlanOptions& options) {
  return Planner(list, options).run();
}

}  // namespace brrr::compiler
