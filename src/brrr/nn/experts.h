// A mixture of experts in place of one feed-forward network: a router sends every token to its top_k
// of `experts` gated networks, each with room for a fixed number of tokens, so that all shapes are
// known before the data is.
//
//   p = softmax(router x);  y = sum over the top_k experts e of p_e / (their sum) * expert_e(x)
//
// Where more tokens choose an expert than it has room for, first choices go before second ones and
// earlier tokens before later ones; the rest pass by (their sum misses that term). A decoder gets room for
// all: what a token is sent to must not depend on the tokens beside it.
#pragma once

#include "brrr/nn/feed_forward.h"

namespace brrr {

struct ExpertsOptions {
  int64_t experts = 8;
  int64_t top_k = 2;
  int64_t hidden = 0;         // of one expert
  int64_t shared_hidden = 0;  // > 0: of one more network that every token goes through
  double capacity_factor =
      1.25;  // room of an expert as a multiple of an even share; 0: for all tokens
  // Times experts * sum_e (share of choices that went to e) * (mean of p_e), which is 1 where all are
  // used alike (Switch Transformers, arXiv 2101.03961, eq. 4). Added to ForwardInputs::extra_losses.
  double balance_weight = 0.01;
  Init init = Init::normal(), out_init = Init::normal();
};

// x [..., width] -> [..., width]
class Experts : public Layer {
 public:
  Experts(int64_t width, Random& random, const ExpertsOptions& options);
  ~Experts() override;

  // E 3 h f + router h E (+ 3 h f_shared); the active ones: of the experts that one token goes through.
  static int64_t count_for(int64_t width, const ExpertsOptions& options);
  static int64_t active_count_for(int64_t width, const ExpertsOptions& options);
  int64_t capacity(int64_t tokens) const;  // room of one expert for the tokens of one device

  // Keeps experts / devices of the networks, as one of so many expert-parallel devices does: each has room for the
  // tokens of all devices, and the router still knows all experts. Where nothing is sent, `devices` choices that follow
  // each other share a network. Throws Error where the devices do not divide the experts.
  void keep_share(int64_t devices);

 protected:
  Tensor forward(const Tensor& x, const ForwardInputs& inputs) const override;

 private:
  struct Routing {
    Tensor gates;  // [tokens, top_k], each row sums to 1
    Tensor slots;  // i64 [top_k * tokens]: expert * capacity + place in it; last of all: no room
    Tensor balance_loss;
  };
  Routing route(const Tensor& tokens, int64_t room) const;
  Tensor run_experts(const Tensor& x) const;  // [networks, rows, width], each its own

  ExpertsOptions options_;
  Linear router_;
  // [networks, hidden, width] twice, [networks, width, hidden]; as many networks as experts, but for keep_share.
  Tensor gate_, up_, down_;
  std::unique_ptr<SwiGlu> shared_;
};

}  // namespace brrr
