// Values and gradients against PyTorch's of the ops whose cases are in tests/fixtures/more.json, first
// and for some second derivatives. Here is how each op is called; torch_values_test.cpp has the rest.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "brrr/brrr.h"
#include "brrr/ops/log_softmax.h"
#include "brrr/ops/losses.h"
#include "brrr/ops/rms_norm.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;
using Inputs = std::vector<Tensor>;
using Call = std::function<Tensor(const Inputs& x, const Json& args)>;

Axes axes_of(const Json& args) { return fixture::sizes(args.at("axes")); }
KeepDims keep_of(const Json& args) {
  return args.value("keep", false) ? KeepDims::yes : KeepDims::no;
}
int64_t axis_of(const Json& args) { return args.at("axis").get<int64_t>(); }
std::optional<double> bound_of(const Json& args, const char* name) {
  if (!args.contains(name)) return {};
  return args[name].get<double>();
}

Call unary(Tensor (*op)(const Tensor&)) {
  return [op](const Inputs& x, const Json&) { return op(x[0]); };
}
Call binary(Tensor (*op)(const Arg&, const Arg&)) {
  return [op](const Inputs& x, const Json&) { return op(x[0], x[1]); };
}
Call loss(Tensor (*op)(const Tensor&, const Tensor&)) {
  return [op](const Inputs& x, const Json&) { return op(x[0], x[1]); };
}
Call reduction(Tensor (*op)(const Tensor&, const Axes&, KeepDims)) {
  return [op](const Inputs& x, const Json& args) { return op(x[0], axes_of(args), keep_of(args)); };
}

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> table = {
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
         return rms_norm(x[0], x.size() > 1 ? x[1] : Tensor(), args.value("eps", 1e-5));
       }},
      {"mse", loss(mse)},
      {"nll", loss(nll)},
      {"nll_each", loss(nll_each)},
  };
  return table;
}

DType dtype_of_input(const Json& input, DType main) {
  return input.contains("dtype") ? parse_dtype(input["dtype"].get<std::string>()) : main;
}

Inputs make_inputs(const Json& test, DType main) {
  Inputs inputs;
  for (const Json& input : test.at("inputs")) {
    inputs.push_back(fixture::tensor_of(fixture::sizes(input.at("shape")), input.at("values"),
                                        dtype_of_input(input, main)));
  }
  return inputs;
}

void expect_output(const Tensor& output, const Json& expected, DType main) {
  const DType dtype = dtype_of_input(expected, main);
  EXPECT_EQ(to_text(output.dtype()), to_text(dtype));
  EXPECT_EQ(output.shape(), fixture::sizes(expected.at("shape")));
  EXPECT_TRUE(fixture::near(output, expected.at("values"), fixture::tolerance_of(dtype)));
}

void expect_grads(const Inputs& grads, const Json& expected, const char* which) {
  ASSERT_EQ(grads.size(), expected.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    EXPECT_TRUE(fixture::near(grads[i], expected[i], fixture::tolerance_of(grads[i].dtype())))
        << which << " " << i;
  }
}

// The first gradients weighted by seeds, and the gradient of that.
void expect_second(const Inputs& grads, const Inputs& leaves, const Json& test) {
  Tensor total;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].requires_grad()) continue;
    const Tensor seed =
        fixture::tensor_of(grads[i].shape(), test["second_seeds"].at(i), grads[i].dtype());
    const Tensor term = sum(grads[i] * seed);
    total = total.defined() ? total + term : term;
  }
  expect_grads(grad(total, leaves), test["second"], "second derivative of input");
}

void run_case(const Json& test, DType main) {
  const Call& call = calls().at(test.at("op").get<std::string>());
  const Json args = test.value("args", Json::object());
  const Inputs inputs = make_inputs(test, main);
  if (test.contains("refused")) {
    EXPECT_NE(fixture::error_of([&] { call(inputs, args); }), "") << "torch refuses this";
    return;
  }
  // 16-bit gradients round after every op of their rule: no tolerance says anything about them.
  const bool with_grad = test.contains("grads") && bit_size(main) >= 32;
  Inputs leaves;
  for (const Tensor& x : inputs) {
    if (with_grad && is_float(x.dtype())) leaves.push_back(x.require_grad());
  }
  const Tensor output = call(inputs, args);
  expect_output(output, test["outputs"].at(0), main);
  if (!with_grad || testing::Test::HasFatalFailure()) return;
  const Tensor seed = fixture::tensor_of(output.shape(), test["seeds"].at(0), output.dtype());
  const bool second = test.contains("second");
  const Inputs grads = grad(output, leaves, {.seed = seed, .create_graph = second});
  expect_grads(grads, test["grads"], "gradient of input");
  if (second) expect_second(grads, leaves, test);
}

class TorchMore : public testing::TestWithParam<std::string> {};

TEST_P(TorchMore, ValuesAndGradientsAgree) {
  const Json fixture = fixture::load("more");
  int count = 0;
  for (const Json& test : fixture.at("cases")) {
    if (test.at("op") != GetParam()) continue;
    ++count;
    for (const Json& dtype : test.at("dtypes")) {
      SCOPED_TRACE(GetParam() + ": " + test.at("name").get<std::string>() + " in " +
                   dtype.get<std::string>());
      try {
        run_case(test, parse_dtype(dtype.get<std::string>()));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
  EXPECT_GT(count, 0) << "no fixture calls this op";
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const auto& [name, call] : calls()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, TorchMore, testing::ValuesIn(op_names()),
                         [](const auto& test) { return test.param; });

TEST(TorchMoreFixture, EveryCaseNamesAnOpThatTheTestCalls) {
  const Json fixture = fixture::load("more");
  for (const Json& test : fixture.at("cases")) {
    EXPECT_TRUE(calls().contains(test.at("op").get<std::string>())) << test.at("op");
  }
}

}  // namespace
}  // namespace brrr
