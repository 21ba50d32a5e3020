// The kernels of random.cpp.
#pragma once

#include "brrr/graph/op_def.h"

namespace brrr {

void uniform_cpu(const KernelCall& call);
void normal_cpu(const KernelCall& call);
void truncated_normal_cpu(const KernelCall& call);
void randint_cpu(const KernelCall& call);

// The normal distribution, exact to f64 in both tails; Phi(-38.5) is the last above 0.
double normal_cdf(double x);
// Its inverse for p in (0, 1/2], by Wichura's AS 241.
double normal_quantile_lower(double p);

// What a truncated normal keeps: the probability below it, above it, and its own.
struct TruncatedMass {
  double below, above, mass;
};

// The nearest values of `dtype` inside [low, high]; low > high where it has none.
struct Interval {
  double low, high;
};
Interval representable_inside(DType dtype, Interval interval);
// The same for [low, high).
Interval representable_below(DType dtype, Interval interval);

}  // namespace brrr
