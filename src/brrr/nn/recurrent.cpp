#include "brrr/nn/recurrent.h"

#include <cmath>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

int64_t gates_of(Cell cell) {
  constexpr int64_t kGates[] = {1, 3, 4};
  return kGates[static_cast<size_t>(cell)];
}

}  // namespace

std::string_view cell_name(Cell cell) {
  constexpr std::string_view kNames[] = {"rnn", "gru", "lstm"};
  return kNames[static_cast<size_t>(cell)];
}

Recurrent::Recurrent(Cell cell, int64_t in, int64_t hidden, Random& random,
                     const RecurrentOptions& options)
    : cell_(cell), hidden_(hidden) {
  check(in > 0 && hidden > 0 && options.layers > 0, cell_name(cell), ": ", options.layers,
        " layers from ", in, " to ", hidden, " units; all must be positive");
  const int64_t rows = gates_of(cell) * hidden;
  const Init init = Init::uniform(1 / std::sqrt(static_cast<double>(hidden)));
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const auto add = [&](const char* name, const Shape& shape) {
      return add_parameter(join_text(name, "_l", layer),
                           init.make(shape, random, parameter_options()));
    };
    LayerWeights weights;
    weights.w_ih = add("weight_ih", {rows, layer == 0 ? in : hidden});
    weights.w_hh = add("weight_hh", {rows, hidden});
    weights.b_ih = add("bias_ih", {rows});
    weights.b_hh = add("bias_hh", {rows});
    layers_.push_back(std::move(weights));
    dropouts_.push_back(
        std::make_unique<Dropout>(options.dropout, options.first_dropout_site + layer));
  }
}

int64_t Recurrent::count_for(Cell cell, int64_t in, int64_t hidden, int64_t layers) {
  const int64_t rows = gates_of(cell) * hidden;
  return rows * (in + hidden + 2) + (layers - 1) * rows * (2 * hidden + 2);
}

Recurrent::Step Recurrent::step(const LayerWeights& weights, const Tensor& from_input,
                                const Step& before) const {
  const Tensor from_hidden = linear(before.hidden, weights.w_hh, weights.b_hh);
  const auto gate = [&](const Tensor& all, int64_t i) {
    return slice(all, -1, {i * hidden_, (i + 1) * hidden_});
  };
  if (cell_ == Cell::rnn) return {tanh(from_input + from_hidden), {}};
  if (cell_ == Cell::gru) {
    const Tensor reset = sigmoid(gate(from_input, 0) + gate(from_hidden, 0)),
                 update = sigmoid(gate(from_input, 1) + gate(from_hidden, 1)),
                 fresh = tanh(gate(from_input, 2) + reset * gate(from_hidden, 2));
    return {fresh + update * (before.hidden - fresh), {}};
  }
  const Tensor both = from_input + from_hidden;
  const Tensor cell =
      sigmoid(gate(both, 1)) * before.cell + sigmoid(gate(both, 0)) * tanh(gate(both, 2));
  return {sigmoid(gate(both, 3)) * tanh(cell), cell};
}

Tensor Recurrent::run_layer(const LayerWeights& weights, const Tensor& x, const Masks& masks,
                            Step& state) const {
  // Time first: a step is a contiguous row of what all inputs contribute.
  const std::vector<Tensor> from_input =
      unstack(linear(transpose(x, 0, 1), weights.w_ih, weights.b_ih), 0);
  std::vector<Tensor> outputs;
  for (size_t t = 0; t < from_input.size(); ++t) {
    if (masks.same_document.defined() && t > 0) {
      const Tensor keep =
          slice(masks.same_document, 1, {static_cast<int64_t>(t) - 1, static_cast<int64_t>(t)});
      state.hidden = state.hidden * keep;
      if (state.cell.defined()) state.cell = state.cell * keep;
    }
    const Step after = step(weights, from_input[t], state);
    outputs.push_back(after.hidden);
    if (!masks.counts.defined()) {
      state = after;
      continue;
    }
    const Tensor is_token = greater(masks.counts, static_cast<double>(t));
    state.hidden = where(is_token, after.hidden, state.hidden);
    if (state.cell.defined()) state.cell = where(is_token, after.cell, state.cell);
  }
  return stack(outputs, 1);
}

Recurrent::Masks Recurrent::masks_of(const Tensor& x, const ForwardInputs& inputs) {
  Masks masks;
  if (inputs.documents.defined()) {
    const int64_t seq = x.dim(1);
    masks.same_document =
        cast(equal(slice(inputs.documents, 1, {1, seq}), slice(inputs.documents, 1, {0, seq - 1})),
             x.dtype());
  }
  if (inputs.decode) masks.counts = unsqueeze(inputs.decode->counts, 1);
  return masks;
}

RecurrentState Recurrent::make_state(int64_t batch, const TensorOptions& options) const {
  RecurrentState state;
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    state.hidden.push_back(zeros({batch, hidden_}, options));
    if (cell_ == Cell::lstm) state.cell.push_back(zeros({batch, hidden_}, options));
  }
  return state;
}

RecurrentResult Recurrent::operator()(const Tensor& x, const RecurrentState& state,
                                      const ForwardInputs& inputs) const {
  const graph::Scope scope = enter();
  check(x.rank() == 3, cell_name(cell_), ": x of shape ", x.shape(), " must be [batch, seq, in]");
  check(state.hidden.empty() || state.hidden.size() == layers_.size(), cell_name(cell_),
        ": a state of ", state.hidden.size(), " layers for ", layers_.size());
  const Masks masks = masks_of(x, inputs);
  const RecurrentState start =
      state.hidden.empty() ? make_state(x.dim(0), {.dtype = x.dtype(), .device = x.device()})
                           : state;
  RecurrentResult result{.output = x, .state = {}};
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    if (layer > 0) result.output = (*dropouts_[layer])(result.output, inputs);
    Step step{start.hidden[layer], {}};
    if (cell_ == Cell::lstm) step.cell = start.cell[layer];
    result.output = run_layer(layers_[layer], result.output, masks, step);
    result.state.hidden.push_back(step.hidden);
    if (cell_ == Cell::lstm) result.state.cell.push_back(step.cell);
  }
  return result;
}

}  // namespace brrr
