// Values and gradients against PyTorch's for the ops that join, move, pick and sort elements and for
// those that slide windows. The cases are data (tests/fixtures/shapes.json); here is how each op is
// called.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "brrr/brrr.h"
#include "brrr/ops/conv.h"
#include "brrr/ops/index_select.h"
#include "brrr/ops/outer.h"
#include "brrr/ops/pad_roll.h"
#include "brrr/ops/pool.h"
#include "brrr/ops/sort.h"
#include "brrr/ops/update_slice.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;
using Inputs = std::vector<Tensor>;
using Call = std::function<Tensor(const Inputs& x, const Json& args)>;

int64_t integer(const Json& args, const char* name) { return args.at(name).get<int64_t>(); }
Axes list(const Json& args, const char* name) { return fixture::sizes(args.at(name)); }
Size2 pair(const Json& args, const char* name, int64_t otherwise) {
  if (!args.contains(name)) return otherwise;
  return {args[name][0].get<int64_t>(), args[name][1].get<int64_t>()};
}
Tensor bias_of(const Inputs& x) { return x.size() > 2 ? x[2] : Tensor(); }
Order order_of(const Json& args) {
  return args.at("descending").get<bool>() ? Order::descending : Order::ascending;
}
Sorted topk_of(const Inputs& x, const Json& args) {
  return topk(x[0], integer(args, "k"), integer(args, "axis"),
              args.at("largest").get<bool>() ? Pick::largest : Pick::smallest);
}
Tensor conv1d_of(const Inputs& x, const Json& args) {
  return conv1d(x[0], x[1], bias_of(x),
                {.stride = args.value("stride", int64_t{1}),
                 .padding = args.value("padding", int64_t{0}),
                 .dilation = args.value("dilation", int64_t{1}),
                 .groups = args.value("groups", int64_t{1})});
}
Tensor conv2d_of(const Inputs& x, const Json& args) {
  return conv2d(x[0], x[1], bias_of(x),
                {.stride = pair(args, "stride", 1),
                 .padding = pair(args, "padding", 0),
                 .dilation = pair(args, "dilation", 1),
                 .groups = args.value("groups", int64_t{1})});
}
Pool2dOptions pool_of(const Json& args) {
  return {.kernel = pair(args, "kernel", 1),
          .stride = pair(args, "stride", 0),
          .padding = pair(args, "padding", 0)};
}

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> table = {
      {"stack", [](auto& x, auto& args) { return stack(x, integer(args, "axis")); }},
      {"pad",
       [](auto& x, auto& args) {
         return pad(x[0], list(args, "before"), list(args, "after"), args.at("value"));
       }},
      {"flip", [](auto& x, auto& args) { return flip(x[0], list(args, "axes")); }},
      {"roll",
       [](auto& x, auto& args) { return roll(x[0], list(args, "shifts"), list(args, "axes")); }},
      {"index_select",
       [](auto& x, auto& args) { return index_select(x[0], integer(args, "axis"), x[1]); }},
      {"index_add",
       [](auto& x, auto& args) { return index_add(x[0], integer(args, "axis"), x[1], x[2]); }},
      {"one_hot",
       [](auto& x, auto& args) {
         return one_hot(x[0], integer(args, "classes"),
                        parse_dtype(args.at("dtype").template get<std::string>()));
       }},
      {"outer", [](auto& x, auto&) { return outer(x[0], x[1]); }},
      {"sort", [](auto& x,
                  auto& args) { return sort(x[0], integer(args, "axis"), order_of(args)).values; }},
      {"argsort",
       [](auto& x, auto& args) { return argsort(x[0], integer(args, "axis"), order_of(args)); }},
      {"topk", [](auto& x, auto& args) { return topk_of(x, args).values; }},
      {"topk_indices", [](auto& x, auto& args) { return topk_of(x, args).indices; }},
      {"update_slice",
       [](auto& x, auto& args) { return update_slice(x[0], integer(args, "axis"), x[1], x[2]); }},
      {"conv1d", conv1d_of},
      {"conv2d", conv2d_of},
      {"max_pool2d", [](auto& x, auto& args) { return max_pool2d(x[0], pool_of(args)); }},
      {"avg_pool2d", [](auto& x, auto& args) { return avg_pool2d(x[0], pool_of(args)); }},
  };
  return table;
}

const Json& cases() {
  static const Json fixture = fixture::load("shapes");
  return fixture.at("cases");
}

DType dtype_in(const Json& spec, DType main) {
  return spec.contains("dtype") ? parse_dtype(spec["dtype"].get<std::string>()) : main;
}

Inputs make_inputs(const Json& test, DType main) {
  Inputs inputs;
  for (const Json& input : test.at("inputs")) {
    inputs.push_back(fixture::tensor_of(fixture::sizes(input.at("shape")), input.at("values"),
                                        dtype_in(input, main)));
  }
  return inputs;
}

void expect_output(const Tensor& output, const Json& expected, DType main) {
  const DType dtype = dtype_in(expected, main);
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

void expect_second(const Inputs& grads, const Inputs& leaves, const Json& test) {
  Tensor total;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].requires_grad()) continue;
    const Tensor seed =
        fixture::tensor_of(grads[i].shape(), test["second_seeds"][i], grads[i].dtype());
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
  const Json& expected = test.at("outputs").at(0);
  // A gradient of 16-bit floats rounds after every op of its rule and has no useful tolerance.
  if (!test.contains("grads") || (main != DType::f64 && main != DType::f32)) {
    return expect_output(call(inputs, args), expected, main);
  }
  Inputs leaves;
  for (const Tensor& x : inputs) {
    if (is_float(x.dtype())) leaves.push_back(x.require_grad());
  }
  const Tensor output = call(inputs, args);
  expect_output(output, expected, main);
  const Tensor seed = fixture::tensor_of(output.shape(), test["seeds"][0], output.dtype());
  const bool second = test.contains("second");
  const Inputs grads = grad(output, leaves, {.seed = seed, .create_graph = second});
  expect_grads(grads, test["grads"], "gradient of input");
  if (second) expect_second(grads, leaves, test);
}

class TorchShapes : public testing::TestWithParam<std::string> {};

TEST_P(TorchShapes, ValuesAndGradientsAgree) {
  int count = 0;
  for (const Json& test : cases()) {
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

INSTANTIATE_TEST_SUITE_P(Ops, TorchShapes, testing::ValuesIn(op_names()),
                         [](const auto& test) { return test.param; });

TEST(TorchShapesFixture, EveryCaseNamesAnOpThatTheTestCalls) {
  for (const Json& test : cases()) {
    EXPECT_TRUE(calls().contains(test.at("op").get<std::string>())) << test.at("op");
  }
}

}  // namespace
}  // namespace brrr
