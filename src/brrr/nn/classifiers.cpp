#include "brrr/nn/classifiers.h"

#include "brrr/nn/convolution.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

// How many elements are left of an image behind all pools.
int64_t features_of(const CnnConfig& config) {
  check(!config.filters.empty(), "cnn: there must be at least one stage of filters");
  check(config.kernel > 0 && config.kernel % 2 == 1, "cnn: a kernel of ", config.kernel,
        " has no middle; use an odd number");
  int64_t height = config.height, width = config.width;
  for (size_t stage = 0; stage < config.filters.size(); ++stage) {
    height /= 2;
    width /= 2;
  }
  check(height > 0 && width > 0, "cnn: images of ", config.height, " x ", config.width,
        " are too small for ", config.filters.size(), " pools by 2; use fewer stages");
  return config.filters.back() * height * width;
}

}  // namespace

int64_t MlpConfig::parameter_count() const {
  int64_t count = 0, from = inputs;
  for (int64_t to : hidden) {
    count += (from + 1) * to;
    from = to;
  }
  return count + (from + 1) * outputs;
}

Mlp::Mlp(const MlpConfig& config, Random& random) : config_(config) {
  int64_t from = config.inputs, site = 0;
  for (int64_t to : config.hidden) {
    net_.add<Linear>(from, to, random, LinearOptions{.init = Init::kaiming_normal()});
    net_.add<Function>([how = config.activation](const Tensor& x) { return activate(x, how); });
    net_.add<Dropout>(config.dropout, site++);
    from = to;
  }
  net_.add<Linear>(from, config.outputs, random, LinearOptions{.init = Init::xavier_normal()});
  add_module("net", net_);
}

Tensor Mlp::forward(const Tensor& x, const ForwardInputs& inputs) const {
  check(x.rank() >= 2 && x.numel() == x.dim(0) * config_.inputs, "mlp: rows of ", x.shape(),
        " do not have the ", config_.inputs, " inputs that the network takes");
  return net_(x.rank() == 2 ? x : reshape(x, {x.dim(0), config_.inputs}), inputs);
}

int64_t CnnConfig::parameter_count() const {
  int64_t count = 0, from = channels;
  for (int64_t to : filters) {
    count += (from * kernel * kernel + 1) * to;
    from = to;
  }
  return count + (features_of(*this) + 1) * hidden + (hidden + 1) * outputs;
}

Cnn::Cnn(const CnnConfig& config, Random& random) : config_(config) {
  const int64_t features = features_of(config);
  const auto act = [how = config.activation](const Tensor& x) { return activate(x, how); };
  int64_t from = config.channels;
  for (int64_t to : config.filters) {
    net_.add<Conv2d>(from, to, config.kernel, random,
                     Conv2dLayerOptions{.windows = {.padding = config.kernel / 2}});
    net_.add<Function>(act).add<MaxPool2d>();
    from = to;
  }
  net_.add<Flatten>().add<Dropout>(config.dropout, 0);
  net_.add<Linear>(features, config.hidden, random, LinearOptions{.init = Init::kaiming_normal()});
  net_.add<Function>(act).add<Dropout>(config.dropout, 1);
  net_.add<Linear>(config.hidden, config.outputs, random,
                   LinearOptions{.init = Init::xavier_normal()});
  add_module("net", net_);
}

Tensor Cnn::forward(const Tensor& x, const ForwardInputs& inputs) const {
  check(x.rank() == 4 && x.dim(1) == config_.channels && x.dim(2) == config_.height &&
            x.dim(3) == config_.width,
        "cnn: images ", x.shape(), " must be [batch, ", config_.channels, ", ", config_.height,
        ", ", config_.width, "]");
  return net_(x, inputs);
}

}  // namespace brrr
