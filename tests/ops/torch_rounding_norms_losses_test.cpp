// Values and gradients against PyTorch's of the ops whose cases are in tests/fixtures/rounding_norms_losses.json,
// first and for some second derivatives. Here is how each op is called; torch_values_test.cpp has the rest.
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "fixtures/op_cases.h"

namespace brrr {
namespace {

using fixture::axes_of;
using fixture::axis_of;
using fixture::binary;
using fixture::Call;
using fixture::Calls;
using fixture::Inputs;
using fixture::Json;
using fixture::keep_of;
using fixture::optional_input;
using fixture::reduction;
using fixture::unary;

std::optional<double> bound_of(const Json& args, const char* name) {
  if (!args.contains(name)) return {};
  return args[name].get<double>();
}
Call loss(Tensor (*op)(const Tensor&, const Tensor&)) {
  return [op](const Inputs& x, const Json&) { return op(x[0], x[1]); };
}

const Calls& calls() {
  static const Calls table = {
      {"expm1", unary(expm1)},
      {"log1p", unary(log1p)},
      {"tan", unary(tan)},
      {"softplus", unary(softplus)},
      {"gelu_tanh", unary(gelu_tanh)},
      {"floor", unary(floor)},
      {"ceil", unary(ceil)},
      {"round", unary(round)},
      {"isnan", unary(isnan)},
      {"isinf", unary(isinf)},
      {"isfinite", unary(isfinite)},
      {"logical_not", unary(logical_not)},
      {"leaky_relu",
       [](auto& x, auto& args) {
         return leaky_relu(x[0], args.at("slope").template get<double>());
       }},
      {"clamp",
       [](auto& x, auto& args) {
         return clamp(x[0], {.low = bound_of(args, "low"), .high = bound_of(args, "high")});
       }},
      {"fmod", binary(fmod)},
      {"remainder", binary(remainder)},
      {"logical_and", binary(logical_and)},
      {"logical_or", binary(logical_or)},
      {"logical_xor", binary(logical_xor)},
      {"prod", reduction(prod)},
      {"any", reduction(any)},
      {"all", reduction(all)},
      {"argmin", reduction(argmin)},
      {"norm",
       [](auto& x, auto& args) {
         return norm(x[0], fixture::number(args.at("p")), axes_of(args), keep_of(args));
       }},
      {"std",
       [](auto& x, auto& args) {
         return stddev(x[0], axes_of(args), keep_of(args),
                       args.at("correction").template get<int64_t>());
       }},
      {"cumsum", [](auto& x, auto& args) { return cumsum(x[0], axis_of(args)); }},
      {"log_softmax", [](auto& x, auto& args) { return log_softmax(x[0], axis_of(args)); }},
      {"rms_norm",
       [](auto& x, auto& args) {
         return rms_norm(x[0], optional_input(x, 1), args.value("eps", 1e-5));
       }},
      {"mse", loss(mse)},
      {"nll", [](auto& x, auto&) { return nll(x[0], x[1]); }},
      {"nll_each", [](auto& x, auto&) { return nll_each(x[0], x[1]); }},
  };
  return table;
}

const std::vector<Json>& cases() {
  static const std::vector<Json> all = fixture::load_cases({"rounding_norms_losses"});
  return all;
}

class TorchRoundingNormsLosses : public testing::TestWithParam<std::string> {};

TEST_P(TorchRoundingNormsLosses, ValuesAndGradientsAgree) {
  fixture::expect_agreement(GetParam(), cases(), calls());
}

INSTANTIATE_TEST_SUITE_P(Ops, TorchRoundingNormsLosses,
                         testing::ValuesIn(fixture::names_of(calls())),
                         [](const auto& test) { return test.param; });

TEST(TorchRoundingNormsLossesFixture, EveryCaseNamesAnOpThatTheTestCalls) {
  fixture::expect_all_called(cases(), calls());
}

}  // namespace
}  // namespace brrr
