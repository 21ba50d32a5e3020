// Gradients, and what they cost: the backward pass takes twice the FLOPs of the forward pass.
#include <fmt/format.h>

#include <algorithm>

#include "brrr/brrr.h"
#include "brrr/report/claims.h"

using namespace brrr;

namespace {

// loss = 0.5 (x . w - 5)^2, so d loss / d w = (x . w - 5) x
bool small_example() {
  const Tensor x = tensor({1, 2, 3});
  const Tensor w = ones({3});
  w.require_grad();
  const Tensor prediction = matmul(x, w);
  const Tensor loss = 0.5 * square(prediction - 5);
  loss.backward();
  report::Claims claims("loss = 0.5 (x . w - 5)^2 with x = [1, 2, 3], w = [1, 1, 1]");
  claims.near("prediction", prediction.item<double>(), 6, 0);
  claims.near("loss", loss.item<double>(), 0.5, 0);
  for (int i = 0; i < 3; ++i)
    claims.near(fmt::format("w.grad[{}]", i), w.grad()[i].item<double>(), i + 1, 0);
  claims.holds("x.grad: nobody asked for it", x.grad().defined() ? "there" : "none",
               !x.grad().defined());
  claims.holds("prediction.grad: not a leaf, not retained",
               prediction.grad().defined() ? "there" : "none", !prediction.grad().defined());
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

struct Sizes {
  int64_t B, D, K;  // batch, features, outputs
};
enum class InputGrad : bool { no, yes };

struct StepFlops {
  int64_t forward, backward, all_forward, all_backward;
};

// x -> w1 [D, D] -> h1 -> w2 [D, K] -> h2 -> mean of squares
StepFlops two_layers(const Sizes& s, Device device, InputGrad input_grad) {
  const TensorOptions options{.device = device};
  const Tensor x = ones({s.B, s.D}, options), w1 = ones({s.D, s.D}, options),
               w2 = ones({s.D, s.K}, options);
  w1.require_grad();
  w2.require_grad();
  if (input_grad == InputGrad::yes) x.require_grad();
  CostCounter forward;
  const Tensor h1 = matmul(x, w1);
  const Tensor h2 = matmul(h1, w2);
  const Tensor loss = mean(square(h2));
  const StepFlops before{.forward = forward.contractions().flops,
                         .all_forward = forward.total().flops};
  CostCounter backward;
  loss.backward();
  return {before.forward, backward.contractions().flops, before.all_forward,
          backward.total().flops};
}

bool count_flops(const std::string& name, const Sizes& s, Device device) {
  const int64_t BDD = s.B * s.D * s.D, BDK = s.B * s.D * s.K, parameters = s.D * s.D + s.D * s.K;
  const StepFlops full = two_layers(s, device, InputGrad::yes),
                  real = two_layers(s, device, InputGrad::no);
  report::Claims claims(fmt::format("Two layers, {}: B {}, D {}, K {}", name, s.B, s.D, s.K));
  claims.equal("forward: 2BDD + 2BDK", full.forward, 2 * BDD + 2 * BDK);
  claims.equal("backward with x.grad: 4BDD + 4BDK", full.backward, 4 * BDD + 4 * BDK);
  claims.equal("together: 6 x B x parameters", full.forward + full.backward, 6 * s.B * parameters);
  claims.equal("backward without x.grad: 2BDD + 4BDK", real.backward, 2 * BDD + 4 * BDK);
  fmt::print("{}", claims.text());
  const auto share = [](int64_t products, int64_t all) {
    return 100 * static_cast<double>(all - products) / static_cast<double>(products);
  };
  fmt::print(
      "  Products alone. Elementwise and mean add {:.3f} % forward and {:.3f} % backward.\n\n",
      share(real.forward, real.all_forward), share(real.backward, real.all_backward));
  return claims.all_hold();
}

bool lecture_numbers() {
  const Sizes small{1024, 256, 64}, large{16384, 32768, 8192};
  const StepFlops cpu = two_layers(small, Device::null(), InputGrad::yes);
  const StepFlops gpu = two_layers(large, Device::null(), InputGrad::yes);
  const StepFlops gpu_real = two_layers(large, Device::null(), InputGrad::no);
  report::Claims claims("The lecture's numbers");
  claims.equal("small, forward", cpu.forward, 167'772'160);
  claims.equal("small, backward with x.grad", cpu.backward, 335'544'320);
  claims.near("large, forward", Flops(gpu.forward), Flops(4.398047e13), 1e-6);
  claims.near("large, backward with x.grad", Flops(gpu.backward), Flops(8.796093e13), 1e-6);
  claims.near("large, together", Flops(gpu.forward + gpu.backward), Flops(1.319414e14), 1e-6);
  claims.near("large, backward that a trainer runs", Flops(gpu_real.backward), Flops(5.277656e13),
              1e-6);
  fmt::print("{}", claims.text());
  fmt::print(
      "  The rule \"backward is twice forward\" counts the gradient of every product for both its\n"
      "  operands. The first layer's input is data: nobody needs x.grad, and a trainer saves its "
      "2BDD.\n"
      "  \"with x.grad\" is the convention of 6 x parameters x tokens; without is what runs.\n");
  return claims.all_hold();
}

}  // namespace

int main() {
  const bool good[] = {
      small_example(), count_flops("run on this CPU", {1024, 256, 64}, Device::cpu()),
      count_flops("on the null device", {16384, 32768, 8192}, Device::null()), lecture_numbers()};
  return std::ranges::count(good, false) == 0 ? 0 : 1;
}
