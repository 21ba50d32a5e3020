#include "brrr/kernels/cpu/random/random_reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "brrr/base/philox.h"
#include "brrr/kernels/cpu/random/random_cpu.h"

namespace brrr::kernels {
namespace {

// The 64 bits of element i, with nothing shared between elements.
uint64_t bits_of(const Tensor& key, int64_t i) {
  const std::vector<int64_t> words = key.to_vector<int64_t>();
  const PhiloxCounter counter =
      philox_counter(static_cast<uint64_t>(i / 2), static_cast<uint32_t>(words[1]),
                     static_cast<uint32_t>(words[2]));
  const PhiloxBlock block = philox4x32(counter, philox_key(static_cast<uint64_t>(words[0])));
  return static_cast<uint64_t>(block.v[2 * (i % 2)]) << 32 | block.v[2 * (i % 2) + 1];
}

template <typename Value>
Tensors by_element(const ComposeCall& call, Value value) {
  const Tensor y = empty(call.attrs.list("shape"), call.attrs.get<DType>("dtype"));
  for (int64_t i = 0; i < y.numel(); ++i) store_float(y, i, value(i));
  return {y};
}

}  // namespace

Tensors uniform_reference(const ComposeCall& call) {
  const double low = call.attrs.number("low"), high = call.attrs.number("high");
  const Interval within = representable_below(call.attrs.get<DType>("dtype"), {low, high});
  return by_element(call, [&](int64_t i) {
    const double u = static_cast<double>(bits_of(call.input(0), i) >> 11) * 0x1p-53;
    return std::clamp(low + (high - low) * u, within.low, within.high);
  });
}

Tensors normal_reference(const ComposeCall& call) {
  return by_element(call, [&](int64_t i) {
    const double u = static_cast<double>((bits_of(call.input(0), i / 2 * 2) >> 11) + 1) * 0x1p-53;
    const double v = static_cast<double>(bits_of(call.input(0), i / 2 * 2 + 1) >> 11) * 0x1p-53;
    const double angle = 2 * std::numbers::pi * v;
    const double z = std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    return call.attrs.number("mean") + call.attrs.number("std") * z;
  });
}

// Solves P(low < x < z) = u P(low < x < high) for z by bisection.
Tensors truncated_normal_reference(const ComposeCall& call) {
  const double mean = call.attrs.number("mean"), sigma = call.attrs.number("std");
  const Interval bounds{call.attrs.number("low"), call.attrs.number("high")};
  const Interval within = representable_inside(call.attrs.get<DType>("dtype"), bounds);
  const auto between = [](double a, double b) {  // from the tail that both are nearer to
    return a > 0 ? normal_cdf(-a) - normal_cdf(-b) : normal_cdf(b) - normal_cdf(a);
  };
  return by_element(call, [&](int64_t i) {
    if (sigma == 0) return std::clamp(mean, within.low, within.high);
    const double u = (static_cast<double>(bits_of(call.input(0), i) >> 12) + 0.5) * 0x1p-52;
    const double a = (bounds.low - mean) / sigma, b = (bounds.high - mean) / sigma;
    double left = std::max(a, -40.0), right = std::min(b, 40.0);
    for (int halving = 0; halving < 60; ++halving) {
      const double middle = 0.5 * (left + right);
      (between(a, middle) * (1 - u) < between(middle, b) * u ? left : right) = middle;
    }
    return std::clamp(mean + sigma * left, within.low, within.high);
  });
}

Tensors randint_reference(const ComposeCall& call) {
  const Tensor y = empty(call.attrs.list("shape"), call.attrs.get<DType>("dtype"));
  const auto low = static_cast<uint64_t>(call.attrs.integer("low"));
  const uint64_t range = static_cast<uint64_t>(call.attrs.integer("high")) - low;
  for (int64_t i = 0; i < y.numel(); ++i) {
    const auto product = static_cast<unsigned __int128>(bits_of(call.input(0), i)) * range;
    store_int(y, i, static_cast<int64_t>(low + static_cast<uint64_t>(product >> 64)));
  }
  return {y};
}

Tensors bernoulli_reference(const ComposeCall& call) {
  return by_element(call, [&](int64_t i) {
    const double u = static_cast<double>(bits_of(call.input(0), i) >> 11) * 0x1p-53;
    return u < call.attrs.number("p") ? 1.0 : 0.0;
  });
}

Tensors permutation_reference(const ComposeCall& call) {
  const Tensor y = empty(call.attrs.list("shape"), DType::i64);
  std::vector<uint64_t> bits;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < y.numel(); ++i) {
    bits.push_back(bits_of(call.input(0), i));
    places.push_back(i);
  }
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return bits[static_cast<size_t>(a)] < bits[static_cast<size_t>(b)];
  });
  for (int64_t i = 0; i < y.numel(); ++i) store_int(y, i, places[static_cast<size_t>(i)]);
  return {y};
}

}  // namespace brrr::kernels
