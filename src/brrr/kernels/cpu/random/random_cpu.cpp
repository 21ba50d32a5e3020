// Random bits first, a tile at a time, then what the distribution makes of them. The loops that
// matter are compiled once for each CPU target by Highway's foreach_target; fma happens only where
// scalar_math.h says so, so every target gives the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "brrr/kernels/cpu/random/random_cpu.cpp"
#include "brrr/kernels/cpu/random/random_cpu.h"

#include <algorithm>
#include <numbers>

#include "brrr/base/philox.h"
#include "brrr/base/scalar_math.h"
#include "brrr/kernels/scalar/normal_quantile.h"
#include "brrr/kernels/scalar/random_key.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE {

// bits[2b], bits[2b + 1] = block first_block + b of philox4x32. The rounds are the outer loop and
// the blocks of a group lie side by side, which is the order that g++ can vectorise.
void fill_bits(const RandomKey& key, uint64_t first_block, int64_t blocks,
               uint64_t* HWY_RESTRICT bits) {
  constexpr int64_t kGroup = 64;
  alignas(64) uint32_t c0[kGroup], c1[kGroup], c2[kGroup], c3[kGroup];
  for (int64_t group = 0; group < blocks; group += kGroup) {
    for (int64_t b = 0; b < kGroup; ++b) {
      const uint64_t index = first_block + static_cast<uint64_t>(group + b);
      c0[b] = static_cast<uint32_t>(index);
      c1[b] = static_cast<uint32_t>(index >> 32);
      c2[b] = key.draw;
      c3[b] = key.stream;
    }
    PhiloxKey k = philox_key(key.seed);
    for (int round = 0; round < 10; ++round) {
      for (int64_t b = 0; b < kGroup; ++b) {
        const uint64_t product0 = uint64_t{0xD2511F53} * c0[b],
                       product1 = uint64_t{0xCD9E8D57} * c2[b];
        c0[b] = static_cast<uint32_t>(product1 >> 32) ^ c1[b] ^ k.k[0];
        c1[b] = static_cast<uint32_t>(product1);
        c2[b] = static_cast<uint32_t>(product0 >> 32) ^ c3[b] ^ k.k[1];
        c3[b] = static_cast<uint32_t>(product0);
      }
      k = {{k.k[0] + 0x9E3779B9, k.k[1] + 0xBB67AE85}};
    }
    const int64_t count = std::min(kGroup, blocks - group);
    for (int64_t b = 0; b < count; ++b) {
      bits[2 * (group + b)] = static_cast<uint64_t>(c0[b]) << 32 | c1[b];
      bits[2 * (group + b) + 1] = static_cast<uint64_t>(c2[b]) << 32 | c3[b];
    }
  }
}

// Box-Muller: u in (0, 1] and v in [0, 1) give r cos(2 pi v) and r sin(2 pi v), r = sqrt(-2 ln u).
void fill_normals(const uint64_t* HWY_RESTRICT bits, int64_t pairs, double* HWY_RESTRICT out) {
  for (int64_t i = 0; i < pairs; ++i) {
    const double u = static_cast<double>(static_cast<int64_t>(bits[2 * i] >> 11) + 1) * 0x1p-53;
    const double v = static_cast<double>(static_cast<int64_t>(bits[2 * i + 1] >> 11)) * 0x1p-53;
    const double radius = math::sqrt(-2.0 * math::log(u)), angle = v * (2 * std::numbers::pi);
    out[2 * i] = radius * math::cos_reduced(angle);
    out[2 * i + 1] = radius * math::sin_reduced(angle);
  }
}

double quantile_lower(double p) { return lower_quantile(p); }

// z = Phi^-1(below + u mass), u in (0, 1). Each half of the distribution is counted from its own
// tail, where probabilities are small and hence precise.
void fill_truncated(const uint64_t* bits, int64_t count, const TruncatedMass& part, double* out) {
  for (int64_t i = 0; i < count; ++i) {
    // 52 bits and a half: exact, and symmetric about 1/2.
    const double u = (static_cast<double>(static_cast<int64_t>(bits[i] >> 12)) + 0.5) * 0x1p-52;
    const double p = part.below + u * part.mass;
    out[i] = p <= 0.5 ? lower_quantile(p) : -lower_quantile(part.above + (1 - u) * part.mass);
  }
}

}  // namespace brrr::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/kernels/cpu/elementwise/elementwise_cpu.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/tensor/element.h"

namespace brrr::kernels {
namespace {

HWY_EXPORT(fill_bits);
HWY_EXPORT(fill_normals);
HWY_EXPORT(quantile_lower);
HWY_EXPORT(fill_truncated);

}  // namespace

// A seed that does not fit i64 was wrapped into it and is unwrapped here.
RandomKey read_key(const Operand& operand) {
  const auto word = [&](int64_t i) {
    return static_cast<uint64_t>(operand.data<int64_t>()[i * operand.layout->strides[0]]);
  };
  return {word(0), static_cast<uint32_t>(word(1)), static_cast<uint32_t>(word(2))};
}

void fill_random_bits(const RandomKey& key, int64_t first, int64_t count, uint64_t* bits) {
  HWY_DYNAMIC_DISPATCH(fill_bits)(key, static_cast<uint64_t>(first) / 2, (count + 1) / 2, bits);
}

// u < p with u = k 2^-53 is k < p 2^53, which is exact.
uint64_t probability_threshold(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p53)); }

namespace {

// Calls transform(bits, count, values) for tiles that cover the output and stores the values. A
// tile begins at an even element, as a block does; `count` is even, a last odd value is dropped.
template <typename Value, typename Transform>
void generate(const KernelCall& call, const Transform& transform) {
  static_assert(kTileElements % 2 == 0 && kPieceElements % kTileElements == 0);
  const Operand& output = call.output(0);
  const Layout* layout = output.layout;
  const LoopNest nest = make_nest(output.shape(), {&layout, 1});
  const RandomKey key = read_key(call.input(0));
  const int64_t elements = output.count();
  const auto run_tile = [&](int64_t begin, int64_t count) {
    uint64_t bits[kTileElements];
    Value values[kTileElements];
    fill_random_bits(key, begin, count, bits);
    transform(bits, count + count % 2, values);
    const Value* next = values;
    for_each_run(nest, 0, begin, count, [&](int64_t position, int64_t run, int64_t stride) {
      store_elements(std::same_as<Value, double> ? ComputeType::f64 : ComputeType::i64, next,
                     output.dtype, output.base, layout->offset + position, stride, run);
      next += run;
    });
  };
  call.pool.for_each_piece((elements + kPieceElements - 1) / kPieceElements, [&](int64_t piece) {
    const int64_t end = std::min(elements, (piece + 1) * kPieceElements);
    for (int64_t tile = piece * kPieceElements; tile < end; tile += kTileElements) {
      run_tile(tile, std::min(kTileElements, end - tile));
    }
  });
}

// The largest value of T at most `bound`, which must lie within T's finite range.
template <typename T>
double round_down(double bound) {
  const T nearest = convert_element<T>(bound);
  if (static_cast<double>(nearest) <= bound) return static_cast<double>(nearest);
  if constexpr (kIsSmallFloat<T>) {
    using Bits = decltype(nearest.bits);
    const auto bits = nearest.bits;
    const Bits below = static_cast<double>(nearest) > 0 ? static_cast<Bits>(bits - 1)
                       : static_cast<double>(nearest) == 0
                           ? static_cast<Bits>(~T::kMagnitudeMask | 1)  // the least below zero
                           : static_cast<Bits>(bits + 1);
    return static_cast<double>(T::from_bits(below));
  } else {
    return static_cast<double>(std::nextafter(nearest, -std::numeric_limits<T>::infinity()));
  }
}

double round_down(DType dtype, double bound) {
  return visit_dtype(dtype, [bound]<typename T>() -> double {
    if constexpr (std::integral<T>)
      return std::floor(bound);
    else
      return round_down<T>(bound);
  });
}

}  // namespace

Interval representable_inside(DType dtype, Interval interval) {
  return {-round_down(dtype, -interval.low), round_down(dtype, interval.high)};
}

Interval representable_below(DType dtype, Interval interval) {
  const double below = std::nextafter(interval.high, -std::numeric_limits<double>::infinity());
  return representable_inside(dtype, {interval.low, below});
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x * (0.5 * std::numbers::sqrt2)); }

double normal_quantile_lower(double p) { return HWY_DYNAMIC_DISPATCH(quantile_lower)(p); }

TruncatedMass truncated_mass(double mean, double sigma, Interval bounds) {
  // A deviation of 0 has all its mass at the mean, wherever the bounds are.
  const double a = sigma > 0 ? (bounds.low - mean) / sigma : -1,
               b = sigma > 0 ? (bounds.high - mean) / sigma : 1;
  const double below = normal_cdf(a), above = normal_cdf(-b);
  return {below, above, a > 0 ? normal_cdf(-a) - above : normal_cdf(b) - below};
}

void uniform_cpu(const KernelCall& call) {
  const double low = call.attrs.number("low"), high = call.attrs.number("high");
  const Interval within = representable_below(call.output(0).dtype, {low, high});
  generate<double>(call, [=](const uint64_t* bits, int64_t count, double* values) {
    for (int64_t i = 0; i < count; ++i) {
      const double u = static_cast<double>(static_cast<int64_t>(bits[i] >> 11)) * 0x1p-53;
      values[i] = std::min(std::max(low + (high - low) * u, within.low), within.high);
    }
  });
}

void normal_cpu(const KernelCall& call) {
  const double mean = call.attrs.number("mean"), sigma = call.attrs.number("std");
  generate<double>(call, [=](const uint64_t* bits, int64_t count, double* values) {
    HWY_DYNAMIC_DISPATCH(fill_normals)(bits, count / 2, values);
    for (int64_t i = 0; i < count; ++i) values[i] = mean + sigma * values[i];
  });
}

void truncated_normal_cpu(const KernelCall& call) {
  const double mean = call.attrs.number("mean"), sigma = call.attrs.number("std");
  const double low = call.attrs.number("low"), high = call.attrs.number("high");
  const Interval within = representable_inside(call.output(0).dtype, {low, high});
  const TruncatedMass part = truncated_mass(mean, sigma, {low, high});
  generate<double>(call, [=](const uint64_t* bits, int64_t count, double* values) {
    HWY_DYNAMIC_DISPATCH(fill_truncated)(bits, count, part, values);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = std::min(std::max(mean + sigma * values[i], within.low), within.high);
    }
  });
}

void randint_cpu(const KernelCall& call) {
  const auto low = static_cast<uint64_t>(call.attrs.integer("low"));
  const uint64_t range = static_cast<uint64_t>(call.attrs.integer("high")) - low;
  generate<int64_t>(call, [=](const uint64_t* bits, int64_t count, int64_t* values) {
    for (int64_t i = 0; i < count;
         ++i) {  // the upper half of the product: floor(bits range / 2^64)
      const auto product = static_cast<unsigned __int128>(bits[i]) * range;
      values[i] = static_cast<int64_t>(low + static_cast<uint64_t>(product >> 64));
    }
  });
}

void bernoulli_cpu(const KernelCall& call) {
  const uint64_t threshold = probability_threshold(call.attrs.number("p"));
  generate<int64_t>(call, [=](const uint64_t* bits, int64_t count, int64_t* values) {
    for (int64_t i = 0; i < count; ++i) values[i] = bits[i] >> 11 < threshold ? 1 : 0;
  });
}

namespace {
struct Draw {
  uint64_t bits;
  int64_t place;
  // Equal bits, once in 2^64 pairs, keep their order: the result does not depend on the sort.
  bool operator<(const Draw& other) const {
    return bits != other.bits ? bits < other.bits : place < other.place;
  }
};
}  // namespace

// Places in the order of their random bits. The bits are drawn by all threads, the sort is one.
void permutation_cpu(const KernelCall& call) {
  const int64_t count = call.output(0).count();
  const RandomKey key = read_key(call.input(0));
  const std::span draws(reinterpret_cast<Draw*>(call.workspace.data()), static_cast<size_t>(count));
  call.pool.for_each_piece((count + kTileElements - 1) / kTileElements, [&](int64_t tile) {
    uint64_t bits[kTileElements];
    const int64_t begin = tile * kTileElements, size = std::min(kTileElements, count - begin);
    fill_random_bits(key, begin, size, bits);
    for (int64_t i = 0; i < size; ++i) draws[static_cast<size_t>(begin + i)] = {bits[i], begin + i};
  });
  std::sort(draws.begin(), draws.end());
  auto* places = call.output(0).data<int64_t>();
  for (int64_t i = 0; i < count; ++i) places[i] = draws[static_cast<size_t>(i)].place;
}

int64_t permutation_workspace(const KernelCall& call) {
  return call.output(0).count() * static_cast<int64_t>(sizeof(Draw));
}

}  // namespace brrr::kernels
#endif
