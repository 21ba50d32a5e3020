// Numbers that fixtures and tests make alike, so that weights need not be stored: a hash of (name, index).
// tests/fixtures/counter_values.py is the same in Python.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/base/philox.h"
#include "brrr/nn/state_dict.h"
#include "brrr/ops/create/creation.h"

namespace brrr {

// A permutation of the 32-bit integers that mixes all bits (lowbias32).
inline uint32_t hashed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352d;
  x ^= x >> 15;
  x *= 0x846ca68b;
  return x ^ (x >> 16);
}

// `count` numbers in [-scale, scale).
inline std::vector<double> counter_values(std::string_view name, int64_t count, double scale) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = hashed(static_cast<uint32_t>(i) * 0x9E3779B9U + stream_id(name));
    values.push_back((word / 0x1p31 - 1.0) * scale);
  }
  return values;
}

// What the models of the fixtures start from: matrices +-1/sqrt(in), norms near 1, biases small.
inline void fill_by_name(const NamedTensor& parameter) {
  const auto& [name, x] = parameter;
  const bool matrix = x.rank() >= 2, norm = !matrix && name.ends_with("weight");
  const double scale = matrix ? 1 / std::sqrt(static_cast<double>(x.dim(-1))) : 0.1;
  const std::vector<double> values = counter_values(name, x.numel(), scale);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double value = values[static_cast<size_t>(i)] + (norm ? 1 : 0);
    store_float(x, i, static_cast<float>(value));
  }
}

struct TokenBatch {
  Tensor tokens, targets;  // [batch, seq]
};
// Mostly next = 5 token + 3: something to learn.
inline TokenBatch token_batch(int64_t step, int64_t batch, int64_t seq, int64_t vocab) {
  std::vector<int64_t> tokens, targets;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t token = hashed(static_cast<uint32_t>(step * 1000 + b)) % vocab;
    for (int64_t t = 0; t < seq; ++t) {
      const uint32_t chance = hashed(static_cast<uint32_t>(step * 1000000 + b * 1000 + t)) % 4;
      tokens.push_back(token);
      token = (5 * token + 3 + (chance == 0 ? 1 : 0)) % vocab;
      targets.push_back(token);
    }
  }
  return {from_values(tokens, {batch, seq}), from_values(targets, {batch, seq})};
}

// The relative distance of two gradients, estimated from the projections of the one of the fixture: the
// mean square of the differences of projections on unit-variance vectors is that of the distance.
template <typename Json>
double relative_distance(const NamedTensor& gradient, const Json& fixture) {
  const std::vector<double> values = gradient.tensor.to_vector<double>();
  double squares = 0;
  const auto& expected = fixture.at("projections");
  for (size_t k = 0; k < expected.size(); ++k) {
    const std::vector<double> weights =
        counter_values(join_text(gradient.name, "#", k), gradient.tensor.numel(), std::sqrt(3.0));
    double dot = 0;
    for (size_t i = 0; i < values.size(); ++i) dot += values[i] * weights[i];
    const double difference = dot - expected[k].template get<double>();
    squares += difference * difference;
  }
  return std::sqrt(squares / static_cast<double>(expected.size())) /
         fixture.at("norm").template get<double>();
}

}  // namespace brrr
