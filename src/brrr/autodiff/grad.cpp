#include "brrr/autodiff/grad.h"

#include <algorithm>
#include <unordered_map>

#include "brrr/autodiff/walk.h"
#include "brrr/graph/call.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

graph::TapeRecord* record_of(const Tensor& x) {
  return static_cast<graph::TapeRecord*>(x.body().source.get());
}

// Checked for every record before the first rule runs, so that a refused walk leaves all as it was.
void require_walkable(const graph::TapeRecord& record) {
  check(!record.is_freed(), "backward: the tape through ", record.op().name,
        " was used and freed by an earlier backward(); ",
        "pass retain_graph to that one, or compute the result again");
  record.check_unwritten();
}

// Every record since `since` that the results depend on, newest first: a reverse topological order.
std::vector<Ref<graph::TapeRecord>> collect_records(std::span<const SeededResult> results,
                                                    uint64_t since) {
  std::vector<Ref<graph::TapeRecord>> records;
  std::unordered_map<const graph::TapeRecord*, bool> seen;
  const auto visit = [&](graph::TapeRecord* record) {
    if (record && record->sequence() >= since && seen.emplace(record, true).second)
      records.emplace_back(record);
  };
  for (const SeededResult& result : results) visit(record_of(result.value));
  for (size_t i = 0; i < records.size(); ++i) {  // NOLINT: records grows while it is walked
    require_walkable(*records[i]);
    for (int input = 0; input < records[i]->input_count(); ++input)
      visit(records[i]->input_source(input));
  }
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a->sequence() > b->sequence(); });
  return records;
}

// Gradients that have arrived so far.
class Arrived {
 public:
  void add(GradSource* source, int output, GradSlot* leaf, const Tensor& grad) {
    if (source) {
      Tensors& slots = by_record_[source];
      if (slots.size() <= output) slots.resize(output + 1);
      accumulate(slots[output], grad);
    } else if (leaf) {
      accumulate(by_leaf_[leaf], grad);
    }
  }
  Tensors take(GradSource* source, int outputs) {
    Tensors slots = by_record_.count(source) ? std::move(by_record_[source]) : Tensors();
    by_record_.erase(source);
    slots.resize(outputs);
    return slots;
  }
  Tensor of(const graph::ValueKey& key) const {
    if (key.source) {
      const auto found = by_record_.find(key.source);
      return found == by_record_.end() || found->second.size() <= key.output
                 ? Tensor()
                 : found->second[key.output];
    }
    const auto found = by_leaf_.find(key.slot);
    return found == by_leaf_.end() ? Tensor() : found->second;
  }
  std::unordered_map<GradSlot*, Tensor>& leaves() { return by_leaf_; }

 private:
  static void accumulate(Tensor& total, const Tensor& grad) {
    total = total.defined() ? total + grad : grad;
  }

  std::unordered_map<GradSource*, Tensors> by_record_;
  std::unordered_map<GradSlot*, Tensor> by_leaf_;
};

// Runs the gradient rule of one record on what arrived for its outputs.
Tensors run_rule(graph::TapeRecord& record, const Tensors& output_grads) {
  Tensors inputs, outputs;
  uint32_t wanted = 0;
  for (int i = 0; i < record.input_count(); ++i) {
    inputs.push_back(record.input(i));
    if (i < 32 && record.input_wants_grad(i)) wanted |= 1U << i;
  }
  for (int i = 0; i < record.output_count(); ++i) outputs.push_back(record.output(i));
  Tensors grads = record.run_rule({record.attrs(), inputs, outputs, output_grads, wanted});
  invariant(grads.size() == record.input_count(), "the gradient of ", record.op().name,
            " returned ", grads.size(), " tensors for ", record.input_count(), " inputs");
  return grads;
}

void check_grad(const graph::TapeRecord& record, int i, const Tensor& grad,
                const TensorType& input) {
  invariant(grad.shape() == input.shape && grad.dtype() == input.dtype, "the gradient of ",
            record.op().name, " for input ", i, " is ", describe(grad), " and should be ", input);
}

// True when nobody else can see or change these elements.
bool is_sole_owner(const Tensor& x) {
  return x.body_ref()->is_unique() && x.body().storage->is_unique() && x.is_contiguous() &&
         x.storage().bytes() == x.bytes().value();
}

// Adds to the gradient that a leaf, or a value that retains it, has already. A first gradient may be a
// view of another (that of `sum` is) or arrive at two leaves (that of `add` does): a leaf owns its own.
void deliver(GradSlot& slot, const Tensor& grad, bool keep_history) {
  const Tensor before(slot.grad);
  if (!before.defined()) {
    const Tensor kept = keep_history || is_sole_owner(grad) ? grad : clone(grad);
    kept.set_category(Category::gradient);
    slot.grad = kept.body_ref();
  } else if (keep_history) {
    slot.grad = (before + grad).body_ref();
  } else {
    const Tensor terms[] = {before, grad};
    call_into(add_op, terms, {}, before);
  }
}

Tensor seed_of(const Tensor& result, const Tensor& given) {
  if (!given.defined()) {
    check(result.numel() == 1, "backward: the result has shape ", result.shape(),
          "; reduce it to one element (sum, mean), ",
          "or pass the gradient that arrives at it as `seed`");
    return ones(result.shape(), {result.dtype(), result.device()});
  }
  check(given.shape() == result.shape() && given.dtype() == result.dtype(),
        "backward: the seed is ", describe(given), " and the result ", describe(result),
        "; they must be alike");
  return given;
}

// The walk. Values named in `wanted` keep what arrived for them; everything else is consumed.
struct Walk {
  const GradOptions& options;
  std::span<const graph::ValueKey> wanted;
  bool deliver_to_slots;
  Arrived arrived;

  void step(graph::TapeRecord& record, std::vector<Tensor>& kept) {
    Tensors output_grads = arrived.take(&record, record.output_count());
    bool any = false;
    for (int i = 0; i < output_grads.size(); ++i) {
      if (!output_grads[i].defined()) continue;
      any = true;
      if (deliver_to_slots && record.output_slot(i)) {
        const Tensor shared =
            output_grads[i];  // the rule below reads it too, so it is not the slot's own
        deliver(*record.output_slot(i), shared, options.create_graph);
      }
      for (size_t w = 0; w < wanted.size(); ++w) {
        if (wanted[w].source == &record && wanted[w].output == i) kept[w] = output_grads[i];
      }
    }
    if (any) spread(record, run_rule(record, output_grads));
    if (!options.create_graph && !options.retain_graph) record.free_saved();
  }

  void spread(graph::TapeRecord& record, const Tensors& grads) {
    for (int i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || !record.input_wants_grad(i)) continue;
      check_grad(record, i, grads[i], record.input_type(i));
      arrived.add(record.input_source(i), record.input_source_output(i), record.input_slot(i),
                  grads[i]);
    }
  }
};

// Nodes traced during the walk are the backward part of a step; what follows it is the update.
// A walk inside another one belongs to that one.
class BackwardPhase {
 public:
  BackwardPhase() {
    if (!tracer_) return;
    if (tracer_->phase() == graph::Phase::backward) after_ = graph::Phase::backward;
    tracer_->set_phase(graph::Phase::backward);
  }
  ~BackwardPhase() {
    if (!tracer_) return;
    tracer_->set_phase(after_);
    tracer_->set_scope(outer_scope_);
  }
  void start_from(const Tensor& seed) const {
    if (tracer_ && after_ != graph::Phase::backward) tracer_->mark_seed(seed);
  }
  // What the rule of this record calls belongs to the module that called its op.
  void enter(const graph::TapeRecord& record) const {
    if (tracer_) tracer_->set_scope(record.scope());
  }
  BackwardPhase(const BackwardPhase&) = delete;
  BackwardPhase& operator=(const BackwardPhase&) = delete;

 private:
  graph::Tracer* tracer_ = graph::Tracer::current();
  graph::Phase after_ = graph::Phase::update;
  std::string_view outer_scope_ = tracer_ ? tracer_->scope() : std::string_view();
};

std::vector<Tensor> walk(std::span<const SeededResult> results, const GradOptions& options,
                         std::span<const graph::ValueKey> wanted, bool deliver_to_slots,
                         uint64_t since = 0) {
  check(!deliver_to_slots || !graph::Tracer::current(),
        "backward: inside a compiled function gradients are values; use grad(loss, parameters)");
  std::vector<Tensor> kept(wanted.size());
  const BackwardPhase phase;
  const std::vector<Ref<graph::TapeRecord>> records = collect_records(results, since);
  NoGrad mode(options.create_graph);  // rules record only where gradients of gradients are wanted
  Walk state{
      .options = options, .wanted = wanted, .deliver_to_slots = deliver_to_slots, .arrived = {}};
  for (const SeededResult& result : results) {
    const graph::ValueKey root = graph::key_of(result.value);
    state.arrived.add(root.source, root.output, root.slot, result.grad);
  }
  for (const Ref<graph::TapeRecord>& record : records) {
    phase.enter(*record);
    state.step(*record, kept);
  }
  for (size_t w = 0; w < wanted.size(); ++w) {
    if (!kept[w].defined()) kept[w] = state.arrived.of(wanted[w]);
  }
  if (deliver_to_slots) {
    for (auto& [slot, grad] : state.arrived.leaves()) {
      const Tensor arrived = std::exchange(grad, {});
      deliver(*slot, arrived, options.create_graph);
    }
  }
  return kept;
}

std::vector<Tensor> walk_whole(const Tensor& result, const GradOptions& options,
                               std::span<const graph::ValueKey> wanted, bool deliver_to_slots) {
  check(result.requires_grad(),
        "backward: no gradient flows through this result; call require_grad() on a leaf before "
        "computing it");
  const BackwardPhase phase;
  const SeededResult root{result, seed_of(result, options.seed)};
  phase.start_from(root.grad);
  return walk({&root, 1}, options, wanted, deliver_to_slots);
}

}  // namespace

std::vector<Tensor> walk_since(uint64_t since, std::span<const SeededResult> results,
                               std::span<const graph::ValueKey> wanted,
                               const GradOptions& options) {
  return walk(results, options, wanted, false, since);
}

void backward(const Tensor& result, const GradOptions& options) {
  walk_whole(result, options, {}, true);
}

void Tensor::backward() const { brrr::backward(*this); }

std::vector<Tensor> grad(const Tensor& result, std::span<const Tensor> inputs,
                         const GradOptions& options) {
  std::vector<graph::ValueKey> keys;
  for (const Tensor& input : inputs) {
    check(input.requires_grad(), "grad: input ", keys.size(), " (", describe(input),
          ") does not require a gradient; call require_grad() on it before use");
    keys.push_back(graph::key_of(input));
  }
  std::vector<Tensor> grads = walk_whole(result, options, keys, false);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) grads[i] = zeros_like(inputs[i]);
  }
  return grads;
}

std::vector<Tensor> grad(const Tensor& result, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  return grad(result, std::span<const Tensor>(inputs), options);
}

}  // namespace brrr
