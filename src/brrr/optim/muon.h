// Muon: the momentum of a matrix, made nearly orthogonal by Newton-Schulz steps, so that all its
// directions move alike. Vectors, tables of tokens and heads take AdamW.
// Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
#pragma once

#include "brrr/optim/adam.h"

namespace brrr {

// What a matrix [rows, cols] of unit singular values is multiplied by.
enum class MuonScale : uint8_t {
  aspect,  // sqrt(max(1, rows / cols)): the original
  adam_size  // 0.2 sqrt(max(rows, cols)): elements as large as those of AdamW's steps (arXiv 2502.16982)
};

// Which parameters are matrices between hidden layers: two axes or more, and a name that does not say
// wte, wpe, embed or head.
bool is_hidden_matrix(const NamedTensor& parameter);

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  int iterations = 5;
  MuonScale scale = MuonScale::aspect;
  double weight_decay = 0;  // decoupled
  std::function<bool(const NamedTensor&)> matrices = is_hidden_matrix;
  // The others: AdamW with the learning rate times rate_scale.
  MomentRates adam = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
  double adam_rate_scale = 0.015;
  StatePrecision state_precision = StatePrecision::as_parameter;
};

// m = momentum m + (1 - momentum) g;  u = (1 - momentum) g + momentum m (Nesterov), or m
// p -= rate (scale * orthogonalize(u) + weight_decay p)
class Muon : public Optimizer {
 public:
  explicit Muon(std::vector<NamedTensor> parameters, const MuonOptions& options = {});
  std::string_view name() const override { return "muon"; }

 protected:
  Tensor direction(const Update& update) override;

 private:
  Tensor matrix_direction(const Update& update);

  MuonOptions options_;
  State momentum_, first_, second_;
};

// U V^T of x = U S V^T, roughly: singular values end between about 0.7 and 1.2. The last two axes are a
// matrix, those before them a batch; a kernel [out, in, h, w] counts as [out, in h w].
//   X = x / |x|;  five times  A = X X^T,  X = 3.4445 X + (-4.7750 A + 2.0315 A^2) X
Tensor orthogonalize(const Tensor& x, int iterations = 5);

extern const OptimizerEntry muon_entry;

}  // namespace brrr
