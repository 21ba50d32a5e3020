// Random tensors. A thread has a block of Philox: two elements.
#include <numbers>

#include "brrr/kernels/cpu/random/random_cpu.h"
#include "brrr/kernels/cuda/random/random_bits.cuh"
#include "brrr/kernels/cuda/random/random_cuda.h"
#include "brrr/kernels/scalar/normal_quantile.h"

namespace brrr::kernels {
namespace {

// Distribution::draw turns the bits of a pair into two values.
template <typename Distribution>
struct Draw {
  DeviceKey key;
  Elements y;
  int64_t count;
  Distribution distribution;

  __device__ void operator()(int64_t block) const {
    const DeviceKey::Pair bits = key.pair(block);
    typename Distribution::Value values[2];
    distribution.draw(bits.first, bits.second, values);
    y.store(2 * block, values[0]);
    if (2 * block + 1 < count) y.store(2 * block + 1, values[1]);
  }
};

template <typename Distribution>
void generate(const CudaCall& call, const Distribution& distribution) {
  const Operand& y = call.output(0);
  launch_for_each(
      call, (y.count() + 1) / 2,
      Draw<Distribution>{DeviceKey(call.input(0)), Elements(y), y.count(), distribution});
}

__device__ double clamp_to(double x, const Interval& within) {
  const double above = x < within.low ? within.low : x;
  return above > within.high ? within.high : above;
}

struct Uniform {
  using Value = double;
  double low, width;
  Interval within;
  __device__ double one(uint64_t bits) const {
    const double u = static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-53;
    return clamp_to(low + width * u, within);
  }
  __device__ void draw(uint64_t a, uint64_t b, double* values) const {
    values[0] = one(a);
    values[1] = one(b);
  }
};

// Box-Muller: u in (0, 1] and v in [0, 1) give r cos(2 pi v) and r sin(2 pi v), r = sqrt(-2 ln u).
struct Normal {
  using Value = double;
  double mean, sigma;
  __device__ void draw(uint64_t a, uint64_t b, double* values) const {
    const double u = static_cast<double>(static_cast<int64_t>(a >> 11) + 1) * 0x1p-53;
    const double v = static_cast<double>(static_cast<int64_t>(b >> 11)) * 0x1p-53;
    const double radius = math::sqrt(-2.0 * math::log(u)), angle = v * (2 * std::numbers::pi);
    values[0] = mean + sigma * (radius * math::cos_reduced(angle));
    values[1] = mean + sigma * (radius * math::sin_reduced(angle));
  }
};

struct TruncatedNormal {
  using Value = double;
  double mean, sigma;
  TruncatedMass part;
  Interval within;
  __device__ double one(uint64_t bits) const {
    const double u = (static_cast<double>(static_cast<int64_t>(bits >> 12)) + 0.5) * 0x1p-52;
    const double p = part.below + u * part.mass;
    const double z =
        p <= 0.5 ? lower_quantile(p) : -lower_quantile(part.above + (1 - u) * part.mass);
    return clamp_to(mean + sigma * z, within);
  }
  __device__ void draw(uint64_t a, uint64_t b, double* values) const {
    values[0] = one(a);
    values[1] = one(b);
  }
};

struct Integers {
  using Value = int64_t;
  uint64_t low, range;
  __device__ int64_t one(uint64_t bits) const {  // floor(bits range / 2^64)
    return static_cast<int64_t>(low + __umul64hi(bits, range));
  }
  __device__ void draw(uint64_t a, uint64_t b, int64_t* values) const {
    values[0] = one(a);
    values[1] = one(b);
  }
};

struct Coins {
  using Value = int64_t;
  uint64_t threshold;
  __device__ void draw(uint64_t a, uint64_t b, int64_t* values) const {
    values[0] = a >> 11 < threshold ? 1 : 0;
    values[1] = b >> 11 < threshold ? 1 : 0;
  }
};

template <typename C>
struct Drop {
  DeviceKey key;
  Elements x, y;
  Walk walk;
  int64_t count;
  uint64_t threshold;
  C scale;

  __device__ void one(int64_t i, uint64_t bits) const {
    y.store<C>(i, bits >> 11 >= threshold ? x.load<C>(walk.position(i)) * scale : C(0));
  }
  __device__ void operator()(int64_t block) const {
    const DeviceKey::Pair bits = key.pair(block);
    one(2 * block, bits.first);
    if (2 * block + 1 < count) one(2 * block + 1, bits.second);
  }
};

}  // namespace

void uniform_cuda(const CudaCall& call) {
  const double low = call.attrs.number("low"), high = call.attrs.number("high");
  generate(call, Uniform{low, high - low, representable_below(call.output(0).dtype, {low, high})});
}

void normal_cuda(const CudaCall& call) {
  generate(call, Normal{call.attrs.number("mean"), call.attrs.number("std")});
}

void truncated_normal_cuda(const CudaCall& call) {
  const double mean = call.attrs.number("mean"), sigma = call.attrs.number("std");
  const double low = call.attrs.number("low"), high = call.attrs.number("high");
  generate(call, TruncatedNormal{mean, sigma, truncated_mass(mean, sigma, {low, high}),
                                 representable_inside(call.output(0).dtype, {low, high})});
}

void randint_cuda(const CudaCall& call) {
  const auto low = static_cast<uint64_t>(call.attrs.integer("low"));
  generate(call, Integers{low, static_cast<uint64_t>(call.attrs.integer("high")) - low});
}

void bernoulli_cuda(const CudaCall& call) {
  generate(call, Coins{probability_threshold(call.attrs.number("p"))});
}

void dropout_cuda(const CudaCall& call) {
  const Operand &x = call.input(0), &y = call.output(0);
  const double p = call.attrs.number("p");
  const auto run = [&]<typename C>() {
    launch_for_each(call, (y.count() + 1) / 2,
                    Drop<C>{DeviceKey(call.input(1)), Elements(x), Elements(y), walk_of(*x.layout),
                            y.count(), probability_threshold(p), static_cast<C>(1 / (1 - p))});
  };
  compute_type(y.dtype) == ComputeType::f64 ? run.template operator()<double>()
                                            : run.template operator()<float>();
}

}  // namespace brrr::kernels
