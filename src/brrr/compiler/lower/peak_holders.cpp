#include "brrr/compiler/lower/peak_holders.h"

#include <algorithm>
#include <map>

namespace brrr::compiler {
namespace {

// By buffer: the kernels between which its bytes are taken.
struct Lifetime {
  size_t first = SIZE_MAX, last = 0;
};

std::vector<Lifetime> lifetimes_of(const KernelList& list) {
  std::vector<Lifetime> lifetimes(list.buffers.size());
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const auto touch = [&](BufferId id) {
      Lifetime& lifetime = lifetimes[id.index()];
      lifetime.first = std::min(lifetime.first, k);
      lifetime.last = k;
    };
    const Kernel& kernel = list.kernels[k];
    for (const OperandRef& ref : kernel.inputs) touch(ref.buffer);
    for (const OperandRef& ref : kernel.outputs) touch(ref.buffer);
    if (kernel.workspace.valid()) touch(kernel.workspace);
  }
  return lifetimes;
}

// What lies in the arena while kernel k runs, by offset: a result that overwrites an operand counts once.
std::map<int64_t, size_t> live_at(size_t k, const std::vector<Lifetime>& lifetimes,
                                  const MemoryPlan& plan) {
  std::map<int64_t, size_t> live;
  for (size_t b = 0; b < lifetimes.size(); ++b) {
    const bool is_alive = lifetimes[b].first <= k && k <= lifetimes[b].last;
    if (is_alive && plan.offsets[b] >= 0) live[plan.offsets[b]] = b;
  }
  return live;
}

}  // namespace

PeakInstant find_peak(const Graph& graph, const PlannedGraph& planned) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(planned.kernels);
  PeakInstant peak;
  std::map<int64_t, size_t> fullest;
  for (size_t k = 0; k < planned.kernels.kernels.size(); ++k) {
    const std::map<int64_t, size_t> live = live_at(k, lifetimes, planned.memory);
    int64_t bytes = 0;
    for (const auto& [offset, buffer] : live) bytes += planned.kernels.buffers[buffer].bytes;
    if (bytes <= peak.live_bytes) continue;
    peak.kernel = k;
    peak.live_bytes = bytes;
    fullest = live;
  }
  for (const auto& [offset, b] : fullest) {
    const Buffer& buffer = planned.kernels.buffers[b];
    const std::string name =
        buffer.value.valid()
            ? join_text(name_of(graph, buffer.value), " ", graph.type(buffer.value))
            : join_text("scratch of ", planned.kernels.kernels[lifetimes[b].first].name);
    peak.holders.push_back({name, buffer.bytes});
  }
  std::stable_sort(peak.holders.begin(), peak.holders.end(),
                   [](const PeakHolder& a, const PeakHolder& b) { return a.bytes > b.bytes; });
  return peak;
}

std::string describe_peak(const Graph& graph, const PlannedGraph& planned, int count) {
  const PeakInstant peak = find_peak(graph, planned);
  if (peak.holders.empty()) return "It holds nothing";
  const Kernel& kernel = planned.kernels.kernels[peak.kernel];
  std::string text = join_text("At its fullest, while ", kernel.name, " (",
                               graph::phase_name(kernel.phase), ") runs, it holds ");
  const auto named = std::min(static_cast<size_t>(count), peak.holders.size());
  for (size_t i = 0; i < named; ++i) {
    const PeakHolder& holder = peak.holders[i];
    text += join_text(i == 0 ? "" : ", ", holder.name, ": ", Bytes(holder.bytes));
  }
  if (named < peak.holders.size())
    text += join_text(", and ", peak.holders.size() - named, " smaller values");
  return text;
}

}  // namespace brrr::compiler
