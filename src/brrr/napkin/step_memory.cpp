#include "brrr/napkin/step_memory.h"

#include <algorithm>

namespace brrr {
namespace {

enum class Use : uint8_t { transient, activation, logits, gradient };

struct Lifetime {
  int first = -1, last = -1;  // kernels that touch it
  Phase made = Phase::forward, read = Phase::forward;
};

// Scratch of kernels is left out: it is that of the CPU's (f32 copies of low operands for one), and libraries of
// other devices have a fixed amount, counted with their context.
std::vector<Lifetime> lifetimes(const KernelList& list) {
  std::vector<Lifetime> lives(list.buffers.size());
  const auto touch = [&](BufferId id, int kernel, Phase phase) {
    Lifetime& life = lives[id.index()];
    if (life.first < 0) life.first = kernel, life.made = phase;
    life.last = kernel;
    life.read = phase;
  };
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const Kernel& kernel = list.kernels[k];
    for (const auto* refs : {&kernel.inputs, &kernel.outputs}) {
      for (const OperandRef& ref : *refs) touch(ref.buffer, static_cast<int>(k), kernel.phase);
    }
  }
  return lives;
}

bool is_vocab_wide(const Graph& graph, ValueId id, int64_t vocab) {
  if (!id.valid()) return false;
  const Value& value = graph.value(id);
  const bool in_layer = value.node.valid() && graph.node(value.node).segment.valid();
  return !in_layer && value.type.shape.size() > 0 && value.type.shape.back() == vocab;
}

Use use_of(const Graph& graph, const Buffer& buffer, const Lifetime& life, int64_t vocab) {
  if (life.made == Phase::forward && life.read != Phase::forward)
    return is_vocab_wide(graph, buffer.value, vocab) ? Use::logits : Use::activation;
  if (life.made == Phase::backward && life.read == Phase::update) return Use::gradient;
  return Use::transient;
}

// Bytes covered by intervals of the arena: buffers that write over an operand share theirs.
int64_t covered(std::vector<std::pair<int64_t, int64_t>>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t bytes = 0, end = 0;
  for (const auto& [begin, stop] : intervals) {
    bytes += std::max<int64_t>(0, stop - std::max(begin, end));
    end = std::max(end, stop);
  }
  return bytes;
}

}  // namespace

StepMemory step_memory(const PlannedProgram& program, int64_t vocab) {
  const KernelList& list = program.kernels;
  const std::vector<Lifetime> lives = lifetimes(list);
  StepMemory memory;
  std::vector<Use> uses(list.buffers.size(), Use::transient);
  for (size_t b = 0; b < list.buffers.size(); ++b) {
    const Buffer& buffer = list.buffers[b];
    if (buffer.place != Place::temporary || lives[b].first < 0) continue;
    uses[b] = use_of(program.graph(), buffer, lives[b], vocab);
    if (uses[b] == Use::activation) memory.activations += buffer.bytes;
    if (uses[b] == Use::gradient) memory.gradients += buffer.bytes;
  }
  int64_t fullest = 0;
  for (int k = 0; k < static_cast<int>(list.kernels.size()); ++k) {
    // Activations are gone by the updates. In a model of two layers what an update makes may outweigh them,
    // and then two short models would not tell what a layer adds.
    if (list.kernels[static_cast<size_t>(k)].phase == Phase::update) continue;
    std::vector<std::pair<int64_t, int64_t>> alive;
    int64_t logits = 0;
    for (size_t b = 0; b < list.buffers.size(); ++b) {
      const int64_t offset = program.plan.offsets[b];
      const bool counts = list.buffers[b].place == Place::temporary && offset >= 0 &&
                          uses[b] != Use::gradient && lives[b].first <= k && k <= lives[b].last;
      if (counts) alive.emplace_back(offset, offset + list.buffers[b].bytes);
      if (counts && uses[b] == Use::logits) logits += list.buffers[b].bytes;
    }
    memory.logits = std::max(memory.logits, logits);  // of one chunk, where they are made in chunks
    fullest = std::max(fullest, covered(alive));
  }
  memory.transient = std::max<int64_t>(0, fullest - memory.activations - memory.logits);
  return memory;
}

}  // namespace brrr
