#include "brrr/ops/elementwise/unary.h"

#include <cmath>
#include <numbers>

#include "brrr/graph/call.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary_function.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

// u = sqrt(2/pi) (x + 0.044715 x^3) in gelu_tanh.
constexpr double kSqrt2OverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kCubic = 0.044715;

// One pass through a kernel of its own (activation_backward.cpp).
template <const OpDef& kBackward>
Tensors fused_grad(const GradCall& call) {
  return {call_one(kBackward, {x_of(call), dy_of(call)})};
}

Tensors leaky_relu_grad(const GradCall& call) {
  const Tensor& dy = call.output_grad(0);
  return {where(x_of(call) > 0, dy, dy * call.attrs.number("slope"))};
}

TensorTypes infer_leaky_relu(const InferCall& call) {
  check(std::isfinite(call.attrs.number("slope")), "leaky_relu: slope ", call.attrs.number("slope"),
        " must be finite");
  return infer_same(call);
}

}  // namespace

constinit const OpDef neg_op = number_function<kernels::Unary::neg>(
    {.name = "neg",
     .formula = "-x",
     .grad = [](const GradCall& call) -> Tensors { return {-dy_of(call)}; },
     .scalar = [](const double* x, const Attrs&) { return -x[0]; },
     .samples = samples_any});

constinit const OpDef abs_op = number_function<kernels::Unary::abs>(
    {.name = "abs",
     .formula = "|x|",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * sign(x_of(call))}; },
     .grad_reads = kReadsInput,
     .scalar = [](const double* x, const Attrs&) { return std::fabs(x[0]); },
     .samples = samples_away_from_zero});

constinit const OpDef sign_op = number_function<kernels::Unary::sign>(
    {.name = "sign",
     .formula = "-1, 0 or 1",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * 0.0}; },
     .scalar = [](const double* x,
                  const Attrs&) { return x[0] == 0 ? x[0] : std::copysign(1.0, x[0]); },
     .samples = samples_away_from_zero});

constinit const OpDef square_op = number_function<kernels::Unary::square>(
    {.name = "square",
     .formula = "x * x",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * (2.0 * x_of(call))}; },
     .grad_reads = kReadsInput,
     .compose = [](const ComposeCall& call) -> Tensors { return {call.input(0) * call.input(0)}; },
     .samples = samples_any});

constinit const OpDef relu_op = number_function<kernels::Unary::relu>(
    {.name = "relu",
     .formula = "max(x, 0)",
     .grad = [](const GradCall& call) -> Tensors {
       return {where(y_of(call) <= 0, 0, dy_of(call))};  // a NaN lets the gradient through
     },
     .grad_reads = kReadsOutput,
     .compose = [](const ComposeCall& call) -> Tensors { return {maximum(call.input(0), 0)}; },
     .samples = samples_away_from_zero});

constinit const OpDef exp_op = float_function<kernels::Unary::exp>(
    {.name = "exp",
     .formula = "e^x",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * y_of(call)}; },
     .grad_reads = kReadsOutput,
     .scalar = [](const double* x, const Attrs&) { return std::exp(x[0]); },
     .samples = samples_any});

constinit const OpDef log_op = float_function<kernels::Unary::log>(
    {.name = "log",
     .formula = "ln x",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) / x_of(call)}; },
     .grad_reads = kReadsInput,
     .scalar = [](const double* x, const Attrs&) { return std::log(x[0]); },
     .samples = samples_positive});

constinit const OpDef sqrt_op = float_function<kernels::Unary::sqrt>(
    {.name = "sqrt",
     .formula = "x^(1/2)",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * 0.5 / y_of(call)}; },
     .grad_reads = kReadsOutput,
     .scalar = [](const double* x, const Attrs&) { return std::sqrt(x[0]); },
     .samples = samples_positive});

constinit const OpDef rsqrt_op = float_function<kernels::Unary::rsqrt>(
    {.name = "rsqrt",
     .formula = "x^(-1/2)",
     .grad = [](const GradCall& call) -> Tensors {
       const Tensor y = y_of(call);
       return {dy_of(call) * (-0.5 * y * square(y))};
     },
     .grad_reads = kReadsOutput,
     .compose = [](const ComposeCall& call) -> Tensors { return {1.0 / sqrt(call.input(0))}; },
     .samples = samples_positive});

constinit const OpDef reciprocal_op = float_function<kernels::Unary::reciprocal>(
    {.name = "reciprocal",
     .formula = "1 / x",
     .grad = [](const GradCall& call) -> Tensors { return {-dy_of(call) * square(y_of(call))}; },
     .grad_reads = kReadsOutput,
     .compose = [](const ComposeCall& call) -> Tensors { return {1.0 / call.input(0)}; },
     .samples = samples_away_from_zero});

constinit const OpDef sin_op = float_function<kernels::Unary::sin>(
    {.name = "sin",
     .formula = "sin x",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * cos(x_of(call))}; },
     .grad_reads = kReadsInput,
     .scalar = [](const double* x, const Attrs&) { return std::sin(x[0]); },
     .samples = samples_any});

constinit const OpDef cos_op = float_function<kernels::Unary::cos>(
    {.name = "cos",
     .formula = "cos x",
     .grad = [](const GradCall& call) -> Tensors { return {-dy_of(call) * sin(x_of(call))}; },
     .grad_reads = kReadsInput,
     .scalar = [](const double* x, const Attrs&) { return std::cos(x[0]); },
     .samples = samples_any});

constinit const OpDef tanh_op = float_function<kernels::Unary::tanh>(
    {.name = "tanh",
     .formula = "tanh x",
     .grad = [](const GradCall& call) -> Tensors {
       return {dy_of(call) * (1.0 - square(y_of(call)))};
     },
     .grad_reads = kReadsOutput,
     .scalar = [](const double* x, const Attrs&) { return std::tanh(x[0]); },
     .samples = samples_any});

constinit const OpDef sigmoid_op =
    float_function<kernels::Unary::sigmoid>({.name = "sigmoid",
                                             .formula = "1 / (1 + exp(-x))",
                                             .grad = [](const GradCall& call) -> Tensors {
                                               const Tensor y = y_of(call);
                                               return {dy_of(call) * (y * (1.0 - y))};
                                             },
                                             .grad_reads = kReadsOutput,
                                             .compose = [](const ComposeCall& call) -> Tensors {
                                               return {1.0 / (1.0 + exp(-call.input(0)))};
                                             },
                                             .samples = samples_any});

constinit const OpDef erf_op = float_function<kernels::Unary::erf>(
    {.name = "erf",
     .formula = "erf x",
     .grad = [](const GradCall& call) -> Tensors {  // 2 / sqrt(pi) exp(-x^2)
       return {dy_of(call) * (exp(-square(x_of(call))) * (2.0 * std::numbers::inv_sqrtpi))};
     },
     .grad_reads = kReadsInput,
     .scalar = [](const double* x, const Attrs&) { return std::erf(x[0]); },
     .samples = samples_any});

constinit const OpDef gelu_op = float_function<kernels::Unary::gelu>(
    {.name = "gelu",
     .formula = "x (1 + erf(x / sqrt 2)) / 2",
     .flops_per_element = 4,
     .grad = fused_grad<gelu_backward_op>,
     .grad_reads = kReadsInput,
     .compose = [](const ComposeCall& call) -> Tensors {
       const Tensor& x = call.input(0);
       return {x * (0.5 * (1.0 + erf(x * (0.5 * std::numbers::sqrt2))))};
     },
     .samples = samples_any});

constinit const OpDef silu_op =
    float_function<kernels::Unary::silu>({.name = "silu",
                                          .formula = "x / (1 + exp(-x))",
                                          .flops_per_element = 4,
                                          .grad = fused_grad<silu_backward_op>,
                                          .grad_reads = kReadsInput,
                                          .compose = [](const ComposeCall& call) -> Tensors {
                                            return {call.input(0) * sigmoid(call.input(0))};
                                          },
                                          .samples = samples_any});

constinit const OpDef expm1_op = float_function<kernels::Unary::expm1>(
    {.name = "expm1",
     .formula = "e^x - 1",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * (y_of(call) + 1.0)}; },
     .grad_reads = kReadsOutput,
     .scalar = [](const double* x, const Attrs&) { return std::expm1(x[0]); },
     .samples = samples_any});

constinit const OpDef log1p_op = float_function<kernels::Unary::log1p>(
    {.name = "log1p",
     .formula = "ln(1 + x)",
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) / (1.0 + x_of(call))}; },
     .grad_reads = kReadsInput,
     .scalar = [](const double* x, const Attrs&) { return std::log1p(x[0]); },
     .samples = [] { return unary_samples(-0.9, 4); }});

constinit const OpDef tan_op = float_function<kernels::Unary::tan>(
    {.name = "tan",
     .formula = "tan x",
     .grad = [](const GradCall& call) -> Tensors {
       return {dy_of(call) * (1.0 + square(y_of(call)))};
     },
     .grad_reads = kReadsOutput,
     .scalar = [](const double* x, const Attrs&) { return std::tan(x[0]); },
     .samples = [] { return unary_samples(-1.3, 1.3); }});  // away from the poles

constinit const OpDef softplus_op = float_function<kernels::Unary::softplus>(
    {.name = "softplus",
     .formula = "ln(1 + exp(x))",
     .flops_per_element = 3,
     .grad = [](const GradCall& call) -> Tensors { return {dy_of(call) * sigmoid(x_of(call))}; },
     .grad_reads = kReadsInput,
     .compose = [](const ComposeCall& call) -> Tensors { return {log1p(exp(call.input(0)))}; },
     .samples = samples_any});

constinit const OpDef gelu_tanh_op = float_function<kernels::Unary::gelu_tanh>(
    {.name = "gelu_tanh",
     .formula = "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2",
     .flops_per_element = 8,
     .grad = fused_grad<gelu_tanh_backward_op>,
     .grad_reads = kReadsInput,
     .compose = [](const ComposeCall& call) -> Tensors {
       const Tensor& x = call.input(0);
       const Tensor u = kSqrt2OverPi * (x + kCubic * (x * square(x)));
       return {0.5 * x * (1.0 + tanh(u))};
     },
     .samples = samples_any});

constinit const OpDef leaky_relu_op = [] {
  OpDef op = number_function<kernels::Unary::leaky_relu>(
      {.name = "leaky_relu",
       .formula = "x where x > 0, else slope * x",
       .grad = leaky_relu_grad,
       .grad_reads = kReadsInput,
       .compose = [](const ComposeCall& call) -> Tensors {
         const Tensor& x = call.input(0);
         return {where(x > 0, x, x * call.attrs.number("slope"))};
       },
       .samples =
           [] {
             return with_attrs(samples_away_from_zero(), {{"slope", 0.1}});
           }});
  op.dtypes = kFloats;
  op.infer = infer_leaky_relu;
  return op;
}();

Tensor neg(const Tensor& x) { return call_one(neg_op, {x}); }
Tensor abs(const Tensor& x) { return call_one(abs_op, {x}); }
Tensor sign(const Tensor& x) { return call_one(sign_op, {x}); }
Tensor square(const Tensor& x) { return call_one(square_op, {x}); }
Tensor relu(const Tensor& x) { return call_one(relu_op, {x}); }
Tensor exp(const Tensor& x) { return call_one(exp_op, {x}); }
Tensor log(const Tensor& x) { return call_one(log_op, {x}); }
Tensor sqrt(const Tensor& x) { return call_one(sqrt_op, {x}); }
Tensor rsqrt(const Tensor& x) { return call_one(rsqrt_op, {x}); }
Tensor reciprocal(const Tensor& x) { return call_one(reciprocal_op, {x}); }
Tensor sin(const Tensor& x) { return call_one(sin_op, {x}); }
Tensor cos(const Tensor& x) { return call_one(cos_op, {x}); }
Tensor tanh(const Tensor& x) { return call_one(tanh_op, {x}); }
Tensor sigmoid(const Tensor& x) { return call_one(sigmoid_op, {x}); }
Tensor erf(const Tensor& x) { return call_one(erf_op, {x}); }
Tensor gelu(const Tensor& x) { return call_one(gelu_op, {x}); }
Tensor silu(const Tensor& x) { return call_one(silu_op, {x}); }
Tensor expm1(const Tensor& x) { return call_one(expm1_op, {x}); }
Tensor log1p(const Tensor& x) { return call_one(log1p_op, {x}); }
Tensor tan(const Tensor& x) { return call_one(tan_op, {x}); }
Tensor softplus(const Tensor& x) { return call_one(softplus_op, {x}); }
Tensor gelu_tanh(const Tensor& x) { return call_one(gelu_tanh_op, {x}); }
Tensor leaky_relu(const Tensor& x, double slope) {
  return call_one(leaky_relu_op, {x}, {{"slope", slope}});
}
}  // namespace brrr
