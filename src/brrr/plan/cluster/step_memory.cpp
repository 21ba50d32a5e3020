#include "brrr/plan/cluster/step_memory.h"

#include <algorithm>
#include <numeric>

namespace brrr::plan {
namespace {

enum class Use : uint8_t { transient, activation, logits, gradient };

constexpr int kOutside = -1;  // of all layers

struct Lifetime {
  int first = -1, last = -1;  // kernels that touch it
  graph::Phase made = graph::Phase::forward, read = graph::Phase::forward;
};

// Scratch of kernels is left out: it is that of the CPU's (f32 copies of low operands for one), and libraries of
// other devices have a fixed amount, counted with their context.
std::vector<Lifetime> lifetimes(const compiler::KernelList& list) {
  std::vector<Lifetime> lives(list.buffers.size());
  const auto touch = [&](compiler::BufferId id, int kernel, graph::Phase phase) {
    Lifetime& life = lives[id.index()];
    if (life.first < 0) life.first = kernel, life.made = phase;
    life.last = kernel;
    life.read = phase;
  };
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const compiler::Kernel& kernel = list.kernels[k];
    for (const auto* refs : {&kernel.inputs, &kernel.outputs}) {
      for (const compiler::OperandRef& ref : *refs)
        touch(ref.buffer, static_cast<int>(k), kernel.phase);
    }
  }
  return lives;
}

// Layers are the outermost segments. Nodes of the backward part have the scope of the module alone.
class LayerNames {
 public:
  explicit LayerNames(const graph::Graph& graph) : graph_(graph) {
    for (const graph::Segment& segment : graph.segments) {
      if (!segment.parent.valid()) names_.push_back(segment.name);
    }
  }
  size_t count() const { return names_.size(); }
  int layer_of(graph::ValueId id) const {
    if (!id.valid() || !graph_.value(id).node.valid()) return kOutside;
    const std::string_view scope = graph_.node(graph_.value(id).node).scope;
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::string_view name = names_[i];
      if (scope.starts_with(name) && (scope.size() == name.size() || scope[name.size()] == '.'))
        return static_cast<int>(i);
    }
    return segment_layer(graph_.node(graph_.value(id).node).segment);
  }

 private:
  int segment_layer(graph::SegmentId segment) const {
    if (!segment.valid()) return kOutside;
    while (graph_.segments[segment.index()].parent.valid())
      segment = graph_.segments[segment.index()].parent;
    const auto found =
        std::find(names_.begin(), names_.end(), graph_.segments[segment.index()].name);
    return static_cast<int>(found - names_.begin());
  }
  const graph::Graph& graph_;
  std::vector<std::string_view> names_;
};

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

// Values that no input of the program reaches and a weight does: the same in every micro-batch. Not so what has no
// operands, or only numbers, such as masks of dropout.
std::vector<bool> values_of_weights(const graph::Graph& graph) {
  enum class From : uint8_t { nothing, weights, input };
  std::vector<From> from(graph.values.size(), From::nothing);
  for (const graph::GraphInput& input : graph.inputs) from[input.value.index()] = From::input;
  for (const graph::StateSlot& state : graph.states) {
    if (graph.type(state.before).shape.size() >= 2) from[state.before.index()] = From::weights;
  }
  for (const graph::Node& node : graph.nodes) {
    From made = From::nothing;
    for (const graph::ValueId id : node.inputs) made = std::max(made, from[id.index()]);
    for (const graph::ValueId id : node.outputs) from[id.index()] = made;
  }
  std::vector<bool> of_weights(from.size());
  for (size_t i = 0; i < from.size(); ++i) of_weights[i] = from[i] == From::weights;
  return of_weights;
}

class Moments {
 public:
  Moments(const runtime::PlannedProgram& program, int64_t vocab)
      : program_(program),
        list_(program.kernels),
        layers_(program.graph()),
        lives_(lifetimes(list_)),
        uses_(list_.buffers.size(), Use::transient),
        kept_by_layer_(layers_.count(), 0) {
    for (size_t b = 0; b < list_.buffers.size(); ++b) {
      if (is_placed(b)) uses_[b] = use_of(b, vocab);
    }
    find_sums_of_gradients();
  }

  StepMemory run() {
    StepMemory memory;
    const std::vector<bool> of_weights = values_of_weights(program_.graph());
    for (size_t b = 0; b < list_.buffers.size(); ++b) {
      if (uses_[b] != Use::activation) continue;
      memory.activations += list_.buffers[b].bytes;
      const graph::ValueId value = list_.buffers[b].value;
      if (value.valid() && of_weights[value.index()])
        memory.weight_copies += list_.buffers[b].bytes;
      const int layer = layers_.layer_of(list_.buffers[b].value);
      if (layer != kOutside) kept_by_layer_[static_cast<size_t>(layer)] += list_.buffers[b].bytes;
    }
    memory.in_layer.assign(layers_.count(), 0);
    find_ends();
    for (int k = 0; k < static_cast<int>(list_.kernels.size()); ++k) {
      // Activations are gone by the updates, and what those make of one parameter is small beside a step's.
      if (list_.kernels[static_cast<size_t>(k)].phase != graph::Phase::update)
        add_instant(k, memory);
    }
    memory.at_loss = std::max<int64_t>(0, memory.at_loss - memory.activations - memory.logits);
    return memory;
  }

 private:
  bool is_placed(size_t b) const {
    return list_.buffers[b].place == compiler::Place::temporary && lives_[b].first >= 0 &&
           program_.plan.offsets[b] >= 0;
  }

  bool is_vocab_wide(graph::ValueId id, int64_t vocab) const {
    if (!id.valid() || layers_.layer_of(id) != kOutside) return false;
    const Shape& shape = program_.graph().type(id).shape;
    return !shape.empty() && shape.back() == vocab;
  }

  // A kernel that scales a gradient and adds up its squares belongs to the update, and runs in the backward part.
  Use use_of(size_t b, int64_t vocab) const {
    const Lifetime& life = lives_[b];
    if (life.made == graph::Phase::forward && life.read != graph::Phase::forward)
      return is_vocab_wide(list_.buffers[b].value, vocab) ? Use::logits : Use::activation;
    if (life.made != graph::Phase::forward && life.read == graph::Phase::update)
      return Use::gradient;
    return Use::transient;
  }

  // A tied table has two gradients, and their sum is written over the first: that is the gradient as it grows.
  void find_sums_of_gradients() {
    std::vector<size_t> latest(list_.buffers.size());
    std::iota(latest.begin(), latest.end(), 0);
    std::stable_sort(latest.begin(), latest.end(),
                     [&](size_t a, size_t b) { return lives_[a].first > lives_[b].first; });
    for (const size_t sum : latest) {
      if (uses_[sum] != Use::gradient) continue;
      for (const size_t part : latest) {
        const bool is_overwritten = uses_[part] == Use::transient && is_placed(part) &&
                                    lives_[part].last == lives_[sum].first &&
                                    program_.plan.offsets[part] == program_.plan.offsets[sum] &&
                                    list_.buffers[part].bytes == list_.buffers[sum].bytes;
        if (is_overwritten) uses_[part] = Use::gradient;
      }
    }
  }

  int layer_of(const compiler::Kernel& kernel) const {
    if (kernel.outputs.empty()) return kOutside;
    return layers_.layer_of(list_.buffers[kernel.outputs[0].buffer.index()].value);
  }

  // Where the layers' kernels end in the forward part, begin in the backward part, and end there.
  void find_ends() {
    for (size_t k = 0; k < list_.kernels.size(); ++k) {
      const compiler::Kernel& kernel = list_.kernels[k];
      if (kernel.phase == graph::Phase::update || layer_of(kernel) == kOutside) continue;
      const auto at = static_cast<int>(k);
      if (kernel.phase == graph::Phase::forward) {
        last_forward_ = at;
      } else {
        if (first_backward_ < 0) first_backward_ = at;
        last_backward_ = at;
      }
    }
    if (first_backward_ < 0) first_backward_ = static_cast<int>(list_.kernels.size());
  }

  void add_instant(int k, StepMemory& memory) const {
    std::vector<std::pair<int64_t, int64_t>> alive;
    int64_t logits = 0;
    for (size_t b = 0; b < list_.buffers.size(); ++b) {
      if (!is_placed(b) || uses_[b] == Use::gradient || k < lives_[b].first || lives_[b].last < k)
        continue;
      const int64_t offset = program_.plan.offsets[b];
      alive.emplace_back(offset, offset + list_.buffers[b].bytes);
      if (uses_[b] == Use::logits) logits += list_.buffers[b].bytes;
    }
    const int64_t bytes = covered(alive);
    memory.logits = std::max(memory.logits, logits);  // of one chunk, where they are made in chunks
    memory.fullest = std::max(memory.fullest, bytes);
    const int layer = layer_of(list_.kernels[static_cast<size_t>(k)]);
    if (layer != kOutside) {
      const auto upto = kept_by_layer_.begin() + layer + 1;
      int64_t& beside = memory.in_layer[static_cast<size_t>(layer)];
      beside = std::max(beside, bytes - std::accumulate(kept_by_layer_.begin(), upto, int64_t{0}));
    } else if (k > last_forward_ && k < first_backward_) {
      memory.at_loss = std::max(memory.at_loss, bytes);
    } else if (k > last_backward_) {
      memory.at_end = std::max(memory.at_end, bytes);
    }
  }

  const runtime::PlannedProgram& program_;
  const compiler::KernelList& list_;
  const LayerNames layers_;
  const std::vector<Lifetime> lives_;
  std::vector<Use> uses_;               // by buffer
  std::vector<int64_t> kept_by_layer_;  // bytes
  int last_forward_ = -1, first_backward_ = -1, last_backward_ = -1;
};

}  // namespace

StepMemory step_memory(const runtime::PlannedProgram& program, int64_t vocab) {
  return Moments(program, vocab).run();
}

}  // namespace brrr::plan
