#include "brrr/autodiff/checkpoint.h"

#include <algorithm>

#include "brrr/autodiff/walk.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/random/random.h"

namespace brrr {
namespace {

// Never called by name: it stands on the tape for a function of the user's, and keeps all inputs.
const OpDef checkpoint_op{.name = "checkpoint", .grad_reads = {.inputs = ~0U}};

// What the record of a call holds besides its inputs.
struct Rerun {
  CheckpointFunction fn;
  std::vector<RandomKey> keys;
  int arguments;  // the first inputs; the others are tensors that fn captured

  // Inputs are older than `since`, so the walk over the second run ends at them.
  Tensors operator()(const GradCall& call) const {
    const GradOptions options{.create_graph = grad_enabled()};
    const uint64_t since = graph::next_sequence();
    const Tensors outputs = run_recorded(call.inputs.first(static_cast<size_t>(arguments)));
    std::vector<SeededResult> results;
    for (int i = 0; i < outputs.size(); ++i) {
      if (call.output_grad(i).defined() && outputs[i].requires_grad())
        results.push_back({outputs[i], call.output_grad(i)});
    }
    std::vector<graph::ValueKey> wanted;
    for (const Tensor& input : call.inputs) {
      const bool asked = input.requires_grad();
      const bool repeated =
          asked && std::find(wanted.begin(), wanted.end(), graph::key_of(input)) != wanted.end();
      wanted.push_back(asked && !repeated ? graph::key_of(input) : graph::ValueKey());
    }
    return Tensors(std::span<const Tensor>(walk_since(since, results, wanted, options)));
  }

  Tensors run_recorded(std::span<const Tensor> inputs) const {
    NoGrad recorded(true);
    KeyReplay same_keys(keys);
    return fn(inputs);
  }
};

bool is_among(const Tensor& x, std::span<const Tensor> others) {
  return std::any_of(others.begin(), others.end(), [&](const Tensor& other) {
    return other.requires_grad() && graph::key_of(other) == graph::key_of(x);
  });
}

}  // namespace

Tensors checkpoint_call(const CheckpointFunction& fn, std::span<const Tensor> inputs) {
  if (graph::Tracer::current()) {
    const graph::SegmentScope segment("checkpoint", true);
    return fn(inputs);
  }
  if (!grad_enabled()) return fn(inputs);

  Rerun rerun{.fn = fn, .keys = {}, .arguments = static_cast<int>(inputs.size())};
  Tensors kept(inputs), results;
  {
    graph::GradWatch watch;
    NoGrad nothing_is_recorded;
    KeyRecording recording(rerun.keys);
    for (const Tensor& x : fn(inputs)) results.push_back(make_view(x, x.layout()));
    for (const Tensor& x : watch.seen()) {
      if (!is_among(x, inputs)) kept.push_back(x);
    }
  }
  const bool any =
      std::any_of(kept.begin(), kept.end(), [](const Tensor& x) { return x.requires_grad(); });
  if (!any) return results;
  const auto record = make_ref<graph::TapeRecord>(checkpoint_op, kept, Attrs());
  record->set_rule(std::move(rerun));
  record->attach_outputs(results);
  return results;
}

}  // namespace brrr
