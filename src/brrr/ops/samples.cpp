#include "brrr/ops/samples.h"

#include "brrr/base/philox.h"

namespace brrr {
namespace {

double draw(uint32_t seed, int64_t i) {
  const PhiloxBlock block =
      philox4x32(philox_counter(static_cast<uint64_t>(i), stream_id("samples")), philox_key(seed));
  return uniform01_double(block.v[0], block.v[1]);
}

}  // namespace

Tensor sample_values(const Shape& shape, uint32_t seed, double low, double high) {
  Tensor x = empty(shape, DType::f64);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = low + (high - low) * draw(seed, i);
  return x;
}

Tensor sample_indices(const Shape& shape, uint32_t seed, int64_t bound) {
  Tensor x = empty(shape, DType::i64);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.data<int64_t>()[i] = static_cast<int64_t>(draw(seed, i) * static_cast<double>(bound));
  }
  return x;
}

Tensor sample_mask(const Shape& shape, uint32_t seed) {
  Tensor x = empty(shape, DType::boolean);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<bool>()[i] = draw(seed, i) < 0.5;
  return x;
}

std::vector<Shape> elementwise_shapes() {
  return {{}, {1}, {0, 3}, {7}, {3, 5}, {2, 3, 33}, {41, 901}};
}

std::vector<Sample> unary_samples(double low, double high) {
  std::vector<Sample> samples;
  uint32_t seed = 1;
  for (const Shape& shape : elementwise_shapes())
    samples.push_back({{sample_values(shape, seed++, low, high)}, {}});
  return samples;
}

std::vector<Sample> binary_samples(double low, double high) {
  std::vector<Sample> samples;
  uint32_t seed = 100;
  const auto add = [&](const Shape& a, const Shape& b) {
    const Tensor x = sample_values(a, seed, low, high), y = sample_values(b, seed + 1, low, high);
    samples.push_back({{x, y}, {}});
    seed += 2;
  };
  for (const Shape& shape : elementwise_shapes()) add(shape, shape);
  add({3, 5}, {5});
  add({4, 1, 3}, {2, 1});
  add({}, {2, 3});
  add({2, 3}, {1});
  add({0, 3}, {1, 3});
  add({64, 700}, {700});
  return samples;
}

std::vector<Sample> samples_any() { return unary_samples(-3, 3); }
std::vector<Sample> samples_positive() { return unary_samples(0.1, 4); }

std::vector<Sample> samples_away_from_zero() {
  std::vector<Sample> samples = unary_samples(-2.8, 2.8);
  for (Sample& sample : samples) {
    double* values = sample.inputs[0].data<double>();
    for (int64_t i = 0; i < sample.inputs[0].numel(); ++i) values[i] += values[i] < 0 ? -0.2 : 0.2;
  }
  return samples;
}

std::vector<Sample> samples_pairs() { return binary_samples(-2, 2); }

}  // namespace brrr
