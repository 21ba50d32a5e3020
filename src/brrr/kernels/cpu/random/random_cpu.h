// The kernels of random.cpp.
#pragma once

#include "brrr/graph/op_def.h"
#include "brrr/kernels/scalar/random_key.h"

namespace brrr::kernels {

void uniform_cpu(const KernelCall& call);
void normal_cpu(const KernelCall& call);
void truncated_normal_cpu(const KernelCall& call);
void randint_cpu(const KernelCall& call);
void bernoulli_cpu(const KernelCall& call);
void permutation_cpu(const KernelCall& call);
int64_t permutation_workspace(const KernelCall& call);

RandomKey read_key(const Operand& operand);
// The 64 bits of each of the elements [first, first + count) of a random tensor; `first` is even. Room
// for one more is needed where `count` is odd.
void fill_random_bits(const RandomKey& key, int64_t first, int64_t count, uint64_t* bits);
// An element's uniform is below p where the upper 53 of its bits are below this.
uint64_t probability_threshold(double p);

// The normal distribution, exact to f64 in both tails; Phi(-38.5) is the last above 0.
double normal_cdf(double x);
// Its inverse for p in (0, 1/2], by Wichura's AS 241.
double normal_quantile_lower(double p);

// What a truncated normal keeps: the probability below it, above it, and its own.
struct TruncatedMass {
  double below, above, mass;
};

struct Interval {
  double low, high;
};
TruncatedMass truncated_mass(double mean, double sigma, Interval bounds);
// The nearest values of `dtype` inside [low, high]; low > high where it has none.
Interval representable_inside(DType dtype, Interval interval);
// The same for [low, high).
Interval representable_below(DType dtype, Interval interval);

}  // namespace brrr::kernels
