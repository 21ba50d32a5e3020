#include "brrr/nn/convolution.h"

#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

int64_t channels_of_group(int64_t in, int64_t out, int64_t groups) {
  check(groups > 0 && in % groups == 0 && out % groups == 0, "conv: ", groups,
        " groups do not divide ", in, " channels in and ", out, " out");
  return in / groups;
}

}  // namespace

Conv1d::Conv1d(int64_t in, int64_t out, int64_t kernel, Random& random,
               const Conv1dLayerOptions& options)
    : windows_(options.windows) {
  const Shape shape{out, channels_of_group(in, out, windows_.groups), kernel};
  weight = add_parameter("weight", options.init.make(shape, random, parameter_options()));
  if (options.bias) bias = add_parameter("bias", zeros({out}, parameter_options()));
}
Tensor Conv1d::forward(const Tensor& x, const ForwardInputs&) const {
  return conv1d(x, weight, bias, windows_);
}

Conv2d::Conv2d(int64_t in, int64_t out, Size2 kernel, Random& random,
               const Conv2dLayerOptions& options)
    : windows_(options.windows) {
  const Shape shape{out, channels_of_group(in, out, windows_.groups), kernel.height, kernel.width};
  weight = add_parameter("weight", options.init.make(shape, random, parameter_options()));
  if (options.bias) bias = add_parameter("bias", zeros({out}, parameter_options()));
}
Tensor Conv2d::forward(const Tensor& x, const ForwardInputs&) const {
  return conv2d(x, weight, bias, windows_);
}

Tensor MaxPool2d::forward(const Tensor& x, const ForwardInputs&) const {
  return max_pool2d(x, options_);
}
Tensor AvgPool2d::forward(const Tensor& x, const ForwardInputs&) const {
  return avg_pool2d(x, options_);
}
Tensor Flatten::forward(const Tensor& x, const ForwardInputs&) const {
  return reshape(x, {x.dim(0), -1});
}

}  // namespace brrr
