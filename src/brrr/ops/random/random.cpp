#include "brrr/ops/random/random.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "brrr/graph/call.h"
#include "brrr/kernels/cpu/random/random_cpu.h"
#include "brrr/kernels/cpu/random/random_reference.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

// The type of a random tensor; refuses keys that are none.
TensorTypes infer_random(const InferCall& call) {
  require_key(call, 0);
  const DType dtype = call.attrs.get<DType>("dtype");
  check(call.op.dtypes.contains(dtype), call.op.name, ": cannot make ", dtype, " elements; use ",
        call.op.dtypes.contains(DType::f32) ? "a float" : "an integer", " dtype and cast");
  numel(call.attrs.list("shape"));  // refuses negative sizes and overflow
  return {{call.attrs.list("shape"), dtype}};
}

// low and high: finite, in order, within the dtype, with a value of the dtype between them.
void require_bounds(const InferCall& call, kernels::Interval (*fit)(DType, kernels::Interval)) {
  const std::string_view op = call.op.name;
  const double low = call.attrs.number("low"), high = call.attrs.number("high");
  const DType dtype = call.attrs.get<DType>("dtype");
  check(std::isfinite(low) && std::isfinite(high), op, ": bounds ", low, " and ", high,
        " must be finite");
  check(low < high, op, ": low is ", low, " and high is ", high, "; low must be below high");
  const double largest = finfo(dtype).max;
  check(-largest <= low && high <= largest, op, ": bounds ", low, " and ", high, " do not fit ",
        dtype, ", whose largest value is ", largest, "; use a wider dtype");
  check(std::isfinite(high - low), op, ": from ", low, " to ", high, " is too wide for f64");
  const kernels::Interval within = fit(dtype, {low, high});
  check(within.low <= within.high, op, ": no ", dtype, " value lies between ", low, " and ", high,
        "; use a wider dtype");
}

void require_gaussian(const InferCall& call) {
  const double mean = call.attrs.number("mean"), sigma = call.attrs.number("std");
  check(std::isfinite(mean), call.op.name, ": mean ", mean, " must be finite");
  check(std::isfinite(sigma) && sigma >= 0, call.op.name, ": std ", sigma,
        " must be finite and >= 0");
}

TensorTypes infer_uniform(const InferCall& call) {
  const TensorTypes types = infer_random(call);
  require_bounds(call, kernels::representable_below);
  return types;
}

TensorTypes infer_normal(const InferCall& call) {
  require_gaussian(call);
  return infer_random(call);
}

// Below this the tails underflow and there is nothing left to choose from.
constexpr double kLeastMass = 1e-290;

TensorTypes infer_truncated_normal(const InferCall& call) {
  const TensorTypes types = infer_random(call);
  require_gaussian(call);
  require_bounds(call, kernels::representable_inside);
  const double mean = call.attrs.number("mean"), sigma = call.attrs.number("std");
  const double low = call.attrs.number("low"), high = call.attrs.number("high");
  const double nearest = std::min(std::max(mean, low), high);
  const double sigmas = nearest == mean ? 0 : std::fabs(nearest - mean) / sigma;
  check(kernels::normal_cdf(-sigmas) > kLeastMass, call.op.name, ": the bounds ", low, " and ",
        high, " are ", sigmas, " sigmas or more away from the mean ", mean,
        ", where a normal distribution never comes; move the mean or the bounds");
  return types;
}

TensorTypes infer_randint(const InferCall& call) {
  const TensorTypes types = infer_random(call);
  const int64_t low = call.attrs.integer("low"), high = call.attrs.integer("high");
  check(low < high, "randint: low is ", low, " and high is ", high, "; low must be below high");
  const IntLimits limits = iinfo(types[0].dtype);
  check(low >= limits.min && std::cmp_less_equal(high - 1, limits.max), "randint: ", low, " .. ",
        high - 1, " do not fit ", types[0].dtype, ", which goes from ", limits.min, " to ",
        limits.max, "; use a wider dtype");
  return types;
}

TensorTypes infer_bernoulli(const InferCall& call) {
  const double p = call.attrs.number("p");
  check(p >= 0 && p <= 1, "bernoulli: p = ", p, " must be a probability, 0 to 1");
  return infer_random(call);
}

// ---- attributes and samples --------------------------------------------------------------------

Attrs uniform_attrs(const Shape& shape, UniformRange range, DType dtype) {
  return {{"shape", shape}, {"dtype", dtype}, {"low", range.low}, {"high", range.high}};
}

Attrs normal_attrs(const Shape& shape, Gaussian gaussian, DType dtype) {
  return {{"shape", shape}, {"dtype", dtype}, {"mean", gaussian.mean}, {"std", gaussian.std}};
}

AbsoluteBounds absolute_bounds(const TruncatedGaussian& gaussian) {
  if (const auto* absolute = std::get_if<AbsoluteBounds>(&gaussian.bounds)) return *absolute;
  const auto& sigmas = std::get<SigmaBounds>(gaussian.bounds);
  check(std::isfinite(sigmas.low) && std::isfinite(sigmas.high) && sigmas.low < sigmas.high,
        "truncated_normal: bounds of ", sigmas.low, " and ", sigmas.high,
        " sigmas; they must be finite, the lower one first");
  check(gaussian.std > 0, "truncated_normal: bounds in sigmas need std > 0, not ", gaussian.std,
        "; use AbsoluteBounds");
  return {gaussian.mean + sigmas.low * gaussian.std, gaussian.mean + sigmas.high * gaussian.std};
}

Attrs truncated_normal_attrs(const Shape& shape, const TruncatedGaussian& gaussian, DType dtype) {
  const AbsoluteBounds bounds = absolute_bounds(gaussian);
  return {{"shape", shape},      {"dtype", dtype},    {"mean", gaussian.mean},
          {"std", gaussian.std}, {"low", bounds.low}, {"high", bounds.high}};
}

Attrs randint_attrs(const Shape& shape, int64_t low, int64_t high, DType dtype) {
  return {{"shape", shape}, {"dtype", dtype}, {"low", low}, {"high", high}};
}

Attrs bernoulli_attrs(const Shape& shape, double p, DType dtype) {
  return {{"shape", shape}, {"dtype", dtype}, {"p", p}};
}

Attrs permutation_attrs(int64_t count) { return {{"shape", Shape{count}}, {"dtype", DType::i64}}; }

Tensor sample_key() {
  return key_tensor({.seed = 0x8000'0000'0000'0005, .stream = 0xffffffff, .draw = 3});
}

// One sample per dtype, and the shapes that break loops: scalar, empty, odd, several pieces.
template <typename MakeAttrs>
std::vector<Sample> random_samples(std::initializer_list<DType> dtypes, MakeAttrs make_attrs) {
  std::vector<Sample> samples;
  for (DType dtype : dtypes) samples.push_back({{sample_key()}, make_attrs(Shape{3, 5}, dtype)});
  for (const Shape& shape : {Shape{}, Shape{0, 2}, Shape{7}, Shape{33, 1001}}) {
    samples.push_back({{sample_key()}, make_attrs(shape, *dtypes.begin())});
  }
  return samples;
}
constexpr auto kSampleFloats = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3};

}  // namespace

const OpDef uniform_op{.name = "uniform",
                       .formula = "uniform in [low, high)",
                       .kind = OpKind::random,
                       .dtypes = kFloats,
                       .infer = infer_uniform,
                       .reference = kernels::uniform_reference,
                       .cpu = kernels::uniform_cpu,
                       .samples = [] {
                         return random_samples(kSampleFloats, [](const Shape& shape, DType dtype) {
                           return uniform_attrs(shape, {-1.5, 2}, dtype);
                         });
                       }};

const OpDef normal_op{.name = "normal",
                      .formula = "mean + std z, z normal",
                      .kind = OpKind::random,
                      .dtypes = kFloats,
                      .flops_per_element = 2,
                      .infer = infer_normal,
                      .reference = kernels::normal_reference,
                      .cpu = kernels::normal_cpu,
                      .samples = [] {
                        return random_samples(kSampleFloats, [](const Shape& shape, DType dtype) {
                          return normal_attrs(shape, {0.5, 2}, dtype);
                        });
                      }};

const OpDef truncated_normal_op{
    .name = "truncated_normal",
    .formula = "mean + std z, z normal, conditioned on [low, high]",
    .kind = OpKind::random,
    .dtypes = kFloats,
    .flops_per_element = 2,
    .infer = infer_truncated_normal,
    .reference = kernels::truncated_normal_reference,
    .cpu = kernels::truncated_normal_cpu,
    .samples = [] {
      auto samples = random_samples(kSampleFloats, [](const Shape& shape, DType dtype) {
        return truncated_normal_attrs(shape, {.mean = 0.25, .std = 0.5}, dtype);
      });
      for (const AbsoluteBounds& tail : {AbsoluteBounds{6, 7}, {-9, -4}, {-1, 12}, {-300, 300}}) {
        samples.push_back(
            {{sample_key()}, truncated_normal_attrs({40}, {.bounds = tail}, DType::f64)});
      }
      return samples;
    }};

const OpDef randint_op{.name = "randint",
                       .formula = "integers in [low, high)",
                       .kind = OpKind::random,
                       .dtypes = kIntegers,
                       .infer = infer_randint,
                       .reference = kernels::randint_reference,
                       .cpu = kernels::randint_cpu,
                       .samples = [] {
                         return random_samples({DType::i64, DType::i32, DType::u8, DType::i16},
                                               [](const Shape& shape, DType dtype) {
                                                 return randint_attrs(shape, 3, 100, dtype);
                                               });
                       }};

const OpDef bernoulli_op{
    .name = "bernoulli",
    .formula = "1 with probability p, else 0",
    .kind = OpKind::random,
    .dtypes = kFloats | dtype_set(DType::boolean),
    .infer = infer_bernoulli,
    .reference = kernels::bernoulli_reference,
    .cpu = kernels::bernoulli_cpu,
    .samples = [] {
      auto samples = random_samples(
          {DType::f32, DType::boolean, DType::bf16},
          [](const Shape& shape, DType dtype) { return bernoulli_attrs(shape, 0.3, dtype); });
      for (double p : {0.0, 1.0})
        samples.push_back({{sample_key()}, bernoulli_attrs({9}, p, DType::f32)});
      return samples;
    }};

const OpDef permutation_op{.name = "permutation",
                           .formula = "0 .. count - 1 in a random order",
                           .kind = OpKind::random,
                           .dtypes = dtype_set(DType::i64),
                           .flops_per_element = 0,
                           .infer = infer_random,
                           .reference = kernels::permutation_reference,
                           .cpu = kernels::permutation_cpu,
                           .workspace = kernels::permutation_workspace,
                           .samples = [] {
                             std::vector<Sample> samples;
                             for (int64_t count : {0, 1, 2, 7, 1024, 20001})
                               samples.push_back({{sample_key()}, permutation_attrs(count)});
                             return samples;
                           }};

// ---- draws -------------------------------------------------------------------------------------

namespace {
RandomStream& default_stream() { return default_random().stream("default"); }
}  // namespace

Tensor uniform(const Shape& shape, const KeyArg& key, UniformRange range, TensorOptions options) {
  return call_one(uniform_op, {key.on(options.device)}, uniform_attrs(shape, range, options.dtype));
}
Tensor uniform(const Shape& shape, UniformRange range, TensorOptions options) {
  return uniform(shape, default_stream(), range, options);
}

Tensor normal(const Shape& shape, const KeyArg& key, Gaussian gaussian, TensorOptions options) {
  return call_one(normal_op, {key.on(options.device)},
                  normal_attrs(shape, gaussian, options.dtype));
}
Tensor normal(const Shape& shape, Gaussian gaussian, TensorOptions options) {
  return normal(shape, default_stream(), gaussian, options);
}

Tensor truncated_normal(const Shape& shape, const KeyArg& key, TruncatedGaussian gaussian,
                        TensorOptions options) {
  return call_one(truncated_normal_op, {key.on(options.device)},
                  truncated_normal_attrs(shape, gaussian, options.dtype));
}
Tensor truncated_normal(const Shape& shape, TruncatedGaussian gaussian, TensorOptions options) {
  return truncated_normal(shape, default_stream(), gaussian, options);
}

Tensor randint(const Shape& shape, const KeyArg& key, int64_t low, int64_t high,
               TensorOptions options) {
  return call_one(randint_op, {key.on(options.device)},
                  randint_attrs(shape, low, high, options.dtype));
}
Tensor randint(const Shape& shape, int64_t low, int64_t high, TensorOptions options) {
  return randint(shape, default_stream(), low, high, options);
}

Tensor bernoulli(const Shape& shape, const KeyArg& key, double p, TensorOptions options) {
  return call_one(bernoulli_op, {key.on(options.device)}, bernoulli_attrs(shape, p, options.dtype));
}
Tensor bernoulli(const Shape& shape, double p, TensorOptions options) {
  return bernoulli(shape, default_stream(), p, options);
}

Tensor permutation(int64_t count, const KeyArg& key, Device device) {
  return call_one(permutation_op, {key.on(device)}, permutation_attrs(count));
}
Tensor permutation(int64_t count, Device device) {
  return permutation(count, default_stream(), device);
}

}  // namespace brrr
