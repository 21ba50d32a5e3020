// The kernels between the matrix products of a language model, f32: activations, normalisations, the
// loss and reductions, once with operands that stay in the L2 caches and once with operands that do
// not; forward, and forward with backward.
// bench/peers/torch_kernels.py measures the same under the same names.
#include "harness.h"

namespace {

using namespace brrr;
using bench::Call;

struct Size {
  const char* name;
  Shape activation, softmax, logits;
};
const Size kSizes[] = {
    {.name = "l2", .activation = {256, 768}, .softmax = {256, 1024}, .logits = {8, 50304}},
    {.name = "dram",
     .activation = {8192, 3072},
     .softmax = {16384, 1024},
     .logits = {1024, 50304}}};

// How often the elements of the largest operand must cross the bus, in each pass.
struct Passes {
  double forward, forward_backward;
};
constexpr Passes kMap{2, 5};      // x -> y; then x or y, dy -> dx
constexpr Passes kSum{1, 2};      // x; then -> dx
constexpr Passes kMaximum{1, 3};  // x; then x -> dx

class Kernels {
 public:
  explicit Kernels(const char* size) : size_(size) {}

  // make(x) gives the call on an operand of that shape.
  template <typename Make>
  void add(const char* name, const Shape& shape, Passes passes, Make make) {
    const double bytes = static_cast<double>(numel(shape)) * sizeof(float);
    bench::add_kernel(std::string(name) + "_" + size_,
                      {.unit = "bytes",
                       .forward = passes.forward * bytes,
                       .forward_backward = passes.forward_backward * bytes},
                      [=] { return make(bench::random_tensor(shape, "x")); });
  }

  // The same for a function of nothing else.
  void add_function(const char* name, const Shape& shape, Passes passes,
                    const std::function<Tensor(const Tensor&)>& function) {
    add(name, shape, passes,
        [=](const Tensor& x) { return Call{.leaves = {x}, .run = [=] { return function(x); }}; });
  }

 private:
  const char* size_;
};

Call layer_norm_call(const Tensor& x) {
  const Tensor weight = ones({x.dim(-1)}), bias = zeros({x.dim(-1)});
  return {.leaves = {x, weight, bias}, .run = [=] { return layer_norm(x, weight, bias); }};
}

Call rms_norm_call(const Tensor& x) {
  const Tensor weight = ones({x.dim(-1)});
  return {.leaves = {x, weight}, .run = [=] { return rms_norm(x, weight); }};
}

Call cross_entropy_call(const Tensor& logits) {
  Random source(1);
  const Tensor targets = randint({logits.dim(0)}, source.stream("targets"), 0, logits.dim(1));
  return {.leaves = {logits}, .run = [=] { return cross_entropy(logits, targets); }};
}

void register_size(const Size& size) {
  Kernels kernels(size.name);
  const Shape& shape = size.activation;
  kernels.add_function("gelu", shape, kMap, gelu);
  kernels.add_function("gelu_tanh", shape, kMap, gelu_tanh);
  kernels.add_function("silu", shape, kMap, silu);
  kernels.add_function("softmax", size.softmax, kMap, [](const Tensor& x) { return softmax(x); });
  kernels.add("layer_norm", shape, kMap, layer_norm_call);
  kernels.add("rms_norm", shape, kMap, rms_norm_call);
  kernels.add("cross_entropy", size.logits, kMaximum, cross_entropy_call);
  kernels.add_function("sum_last", shape, kSum, [](const Tensor& x) { return sum(x, {-1}); });
  kernels.add_function("sum_first", shape, kSum, [](const Tensor& x) { return sum(x, {0}); });
  kernels.add_function("sum_all", shape, kSum, [](const Tensor& x) { return sum(x); });
  kernels.add_function("max_last", shape, kMaximum, [](const Tensor& x) { return max(x, {-1}); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const Size& size : kSizes) register_size(size);
  return brrr::bench::run_all(argc, argv);
}
