#include "brrr/optim/muon.h"

#include <cmath>

#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// Rows and columns of what `orthogonalize` sees as a matrix.
struct MatrixSize {
  int64_t rows, cols;
};
MatrixSize matrix_size(const Tensor& x) {
  if (x.rank() == 4) return {x.dim(0), x.numel() / x.dim(0)};
  return {x.dim(-2), x.dim(-1)};
}

double scale_of(MuonScale scale, MatrixSize size) {
  const auto rows = static_cast<double>(size.rows), cols = static_cast<double>(size.cols);
  return scale == MuonScale::aspect ? std::sqrt(std::max(1.0, rows / cols))
                                    : 0.2 * std::sqrt(std::max(rows, cols));
}

// Decay is for all that have two axes; the rate of the others is AdamW's.
std::vector<ParameterGroup> groups_of(const MuonOptions& options) {
  const auto is_vector = [](const NamedTensor& named) { return named.tensor.rank() < 2; };
  return {{.name = "norms and biases, by AdamW",
           .holds = [=, matrices = options.matrices](
                        const NamedTensor& named) { return is_vector(named) && !matrices(named); },
           .rate_scale = options.adam_rate_scale,
           .weight_decay = 0.0},
          {.name = "tables and heads, by AdamW",
           .holds = [matrices =
                         options.matrices](const NamedTensor& named) { return !matrices(named); },
           .rate_scale = options.adam_rate_scale}};
}

}  // namespace

bool is_hidden_matrix(const NamedTensor& parameter) {
  if (parameter.tensor.rank() < 2) return false;
  for (std::string_view part : {"wte", "wpe", "embed", "head"}) {
    if (parameter.name.find(part) != std::string::npos) return false;
  }
  return true;
}

Tensor orthogonalize(const Tensor& x, int iterations) {
  check(x.rank() >= 2, "orthogonalize: ", describe(x), " is not a matrix");
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kEps = 1e-7;
  const MatrixSize size = matrix_size(x);
  Tensor m = x.rank() == 4 ? reshape(x, {size.rows, size.cols}) : x;
  const bool tall = size.rows > size.cols;  // the products are of the smaller side
  if (tall) m = transpose(m);
  m = m / (norm(m, 2, {-2, -1}, KeepDims::yes) + kEps);
  for (int i = 0; i < iterations; ++i) {
    const Tensor a = matmul(m, transpose(m));
    m = m * kA + matmul(a * kB + matmul(a, a) * kC, m);
  }
  if (tall) m = transpose(m);
  return x.rank() == 4 ? reshape(m, x.shape()) : m;
}

Muon::Muon(std::vector<NamedTensor> parameters, const MuonOptions& options)
    : Optimizer(std::move(parameters), {.weight_decay = options.weight_decay,
                                        .groups = groups_of(options),
                                        .state_precision = options.state_precision}),
      options_(options) {
  for (const NamedTensor& parameter : named_parameters()) {
    check(!options_.matrices(parameter) || parameter.tensor.rank() >= 2, "muon: ", parameter.name,
          " of shape ", parameter.tensor.shape(), " is not a matrix; leave it to AdamW");
  }
  const auto others = [&](const NamedTensor& named) { return !options_.matrices(named); };
  count_steps();
  momentum_ = add_state("momentum", options_.matrices);
  first_ = add_state("first", others);
  second_ = add_state("second", others);
}

Tensor Muon::matrix_direction(const Update& u) {
  const double mu = options_.momentum;
  const Tensor m = write(momentum_, u, read(momentum_, u) * mu + u.gradient * (1 - mu));
  const Tensor ahead = options_.nesterov ? u.gradient * (1 - mu) + m * mu : m;
  return orthogonalize(ahead, options_.iterations) *
         scale_of(options_.scale, matrix_size(u.parameter));
}

Tensor Muon::direction(const Update& u) {
  if (momentum_.tensors[u.index].defined()) return matrix_direction(u);
  const MomentRates& rates = options_.adam;
  const Tensor m = write(first_, u, read(first_, u) * rates.beta1 + u.gradient * (1 - rates.beta1));
  const Tensor v =
      write(second_, u, read(second_, u) * rates.beta2 + square(u.gradient) * (1 - rates.beta2));
  return adam_direction(m, v, u.step, rates);
}

constexpr OptimizerEntry muon_entry{
    .name = "muon",
    .help = "momentum of matrices made orthogonal; AdamW for tables, heads and vectors",
    .make = [](std::vector<NamedTensor> parameters,
               const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
      MuonOptions options = with_settings(MuonOptions{}, settings);
      options.momentum = settings.beta1.value_or(options.momentum);
      options.adam.beta2 = settings.beta2.value_or(options.adam.beta2);
      options.adam.eps = settings.eps.value_or(options.adam.eps);
      return std::make_unique<Muon>(std::move(parameters), options);
    },
    .whole_matrices = "Newton-Schulz products"};

}  // namespace brrr
