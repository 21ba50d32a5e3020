#include "brrr/nn/init.h"

#include <cmath>

namespace brrr {
namespace {

struct Fans {
  double in, out;
};
Fans fans_of(const Shape& shape) {
  check(shape.size() >= 2, "init: a tensor of shape ", shape,
        " has no fan; use normal, uniform or a constant for tensors with fewer than two axes");
  double kernel = 1;
  for (int axis = 2; axis < shape.size(); ++axis) kernel *= static_cast<double>(shape[axis]);
  return {static_cast<double>(shape[1]) * kernel, static_cast<double>(shape[0]) * kernel};
}

}  // namespace

Init Init::scaled_residual(double std, int64_t layers) {
  check(layers > 0, "init: a model of ", layers, " layers has no residuals to scale");
  return normal(std / std::sqrt(2.0 * static_cast<double>(layers)));
}

Tensor Init::make(const Shape& shape, Random& random, TensorOptions options) const {
  const auto with_std = [&](double std) {
    return brrr::normal(shape, random.stream("init"), {.std = std}, options);
  };
  // A uniform of +-bound has std bound / sqrt(3).
  const auto within = [&](double bound) {
    return brrr::uniform(shape, random.stream("init"), {-bound, bound}, options);
  };
  const auto xavier_std = [&] {
    const Fans fans = fans_of(shape);
    return scale_ * std::sqrt(2 / (fans.in + fans.out));
  };
  const auto kaiming_std = [&] { return scale_ / std::sqrt(fans_of(shape).in); };
  switch (kind_) {
    case Kind::constant: return full(shape, scale_, options);
    case Kind::normal: return with_std(scale_);
    case Kind::truncated_normal:
      return brrr::truncated_normal(shape, random.stream("init"),
                                    {.std = scale_, .bounds = SigmaBounds{-3, 3}}, options);
    case Kind::uniform: return within(scale_);
    case Kind::xavier_normal: return with_std(xavier_std());
    case Kind::xavier_uniform: return within(std::sqrt(3.0) * xavier_std());
    case Kind::kaiming_normal: return with_std(kaiming_std());
    case Kind::kaiming_uniform: return within(std::sqrt(3.0) * kaiming_std());
  }
  fail("init: an unknown kind");
}

void initialize(const Tensor& x, const Init& init, Random& random) {
  NoGrad values_only;
  x.copy_from(init.make(x.shape(), random, {.dtype = x.dtype(), .device = x.device()}));
}

}  // namespace brrr
