#include "brrr/nn/experts.h"

#include <algorithm>
#include <cmath>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/index/index_select.h"
#include "brrr/ops/index/sort.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/softmax.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

ExpertsOptions checked(const ExpertsOptions& options) {
  check(options.experts > 0 && options.hidden > 0, "experts: ", options.experts, " experts of ",
        options.hidden, " hidden units; both must be positive");
  check(options.top_k > 0 && options.top_k <= options.experts, "experts: a token cannot choose ",
        options.top_k, " of ", options.experts);
  check(options.capacity_factor >= 0, "experts: capacity_factor ", options.capacity_factor,
        " must be positive, or 0 for room for all");
  return options;
}

}  // namespace

Experts::Experts(int64_t width, Random& random, const ExpertsOptions& options)
    : options_(checked(options)),
      router_(width, options.experts, random, {.bias = false, .init = options.init}) {
  add_module("router", router_);
  const auto table = [&](const char* name, int64_t out, int64_t in, const Init& init) {
    return add_parameter(name, init.make({options_.experts, out, in}, random, parameter_options()));
  };
  gate_ = table("gate_proj", options_.hidden, width, options_.init);
  up_ = table("up_proj", options_.hidden, width, options_.init);
  down_ = table("down_proj", width, options_.hidden, options_.out_init);
  if (options_.shared_hidden > 0) {
    shared_ = std::make_unique<SwiGlu>(
        width, options_.shared_hidden, random,
        FeedForwardOptions{.init = options_.init, .out_init = options_.out_init});
    add_module("shared", *shared_);
  }
}
Experts::~Experts() = default;

int64_t Experts::count_for(int64_t width, const ExpertsOptions& options) {
  return options.experts * 3 * width * options.hidden + options.experts * width +
         3 * width * options.shared_hidden;
}
int64_t Experts::active_count_for(int64_t width, const ExpertsOptions& options) {
  return options.top_k * 3 * width * options.hidden + options.experts * width +
         3 * width * options.shared_hidden;
}

void Experts::keep_share(int64_t devices) {
  check(devices > 0 && options_.experts % devices == 0, "experts: ", devices,
        " devices do not divide ", options_.experts, " experts");
  NoGrad values_only;
  const auto share = [&](const char* name, const Tensor& table) {
    return replace_parameter(name,
                             clone(slice(table.detach(), 0, {0, options_.experts / devices})));
  };
  gate_ = share("gate_proj", gate_);
  up_ = share("up_proj", up_);
  down_ = share("down_proj", down_);
}

int64_t Experts::capacity(int64_t tokens) const {
  if (options_.capacity_factor == 0) return tokens;  // a token chooses an expert at most once
  const double share =
      static_cast<double>(tokens * options_.top_k) / static_cast<double>(options_.experts);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(options_.capacity_factor * share)), 1,
                             tokens);
}

Experts::Routing Experts::route(const Tensor& tokens, int64_t room) const {
  const int64_t count = tokens.dim(0), experts = options_.experts;
  const Tensor probabilities = softmax(router_(tokens));
  const Tensor best = topk(probabilities.detach(), options_.top_k).indices;  // [tokens, top_k]
  const Tensor weights = gather(probabilities, 1, best);

  // All first choices, then all second ones: [top_k * tokens].
  const Tensor choices = reshape(transpose(best, 0, 1), {options_.top_k * count});
  const Tensor chosen = one_hot(choices, experts);
  const Tensor place = sum((cumsum(chosen, 0) - chosen) * chosen, {1});  // how many came before
  const Tensor slots = where(less(place, room), choices * room + place, experts * room);

  const Tensor share = mean(cast(chosen, probabilities.dtype()), {0});
  return {.gates = weights / sum(weights, {1}, KeepDims::yes),
          .slots = slots,
          .balance_loss = sum(share * mean(probabilities, {0})) *
                          (options_.balance_weight * static_cast<double>(experts))};
}

Tensor Experts::run_experts(const Tensor& x) const {
  const Tensor gate = matmul(x, transpose(gate_)), up = matmul(x, transpose(up_));
  return matmul(silu(gate) * up, transpose(down_));
}

Tensor Experts::forward(const Tensor& x, const ForwardInputs& inputs) const {
  const int64_t width = x.dim(-1), count = x.numel() / width, top_k = options_.top_k;
  const Tensor tokens = reshape(x, {count, width});
  const int64_t room = inputs.decode ? count : capacity(count), rows = options_.experts * room;
  const Routing routing = route(tokens, room);
  if (inputs.extra_losses) inputs.extra_losses->push_back(routing.balance_loss);

  // Tokens move into the slots of their experts; the last row takes those without room.
  const TensorOptions like{.dtype = x.dtype(), .device = x.device()};
  const Tensor copies =
      reshape(expand(unsqueeze(tokens, 0), {top_k, count, width}), {top_k * count, width});
  const Tensor placed = index_add(zeros({rows + 1, width}, like), 0, routing.slots, copies);
  const int64_t networks = gate_.dim(0);
  const Tensor results =
      run_experts(reshape(slice(placed, 0, {0, rows}), {networks, rows / networks, width}));

  // And back: those without room read a row of zeros.
  const Tensor padded = concat({reshape(results, {rows, width}), zeros({1, width}, like)}, 0);
  const Tensor returned = reshape(index_select(padded, 0, routing.slots), {top_k, count, width});
  Tensor y = sum(returned * unsqueeze(transpose(routing.gates, 0, 1), -1), {0});
  if (shared_) y = y + (*shared_)(tokens, inputs);
  return reshape(y, x.shape());
}

}  // namespace brrr
