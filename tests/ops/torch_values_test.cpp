// Values and gradients of every op against PyTorch's, first and for some ops second derivatives.
// The cases are data (elementwise, networks and indexing in tests/fixtures); here is how each op is
// called.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "brrr/brrr.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;
using Inputs = std::vector<Tensor>;
using Call = std::function<Inputs(const Inputs& x, const Json& args)>;

Axes axes_of(const Json& args) { return fixture::sizes(args.value("axes", Json::array())); }
KeepDims keep_of(const Json& args) {
  return args.value("keep", false) ? KeepDims::yes : KeepDims::no;
}
int64_t axis_of(const Json& args) { return args.at("axis").get<int64_t>(); }
Shape shape_of(const Json& args) { return fixture::sizes(args.at("shape")); }
Arg number_of(const Json& args) {
  const Json& number = args.at("number");
  return number.is_number_integer() ? Arg(number.get<int64_t>()) : Arg(number.get<double>());
}
Tensor optional_input(const Inputs& x, size_t i) { return i < x.size() ? x[i] : Tensor(); }

Call unary(Tensor (*op)(const Tensor&)) {
  return [op](const Inputs& x, const Json&) -> Inputs { return {op(x[0])}; };
}
Call binary(Tensor (*op)(const Arg&, const Arg&)) {
  return [op](const Inputs& x, const Json&) -> Inputs { return {op(x[0], x[1])}; };
}
Call reduction(Tensor (*op)(const Tensor&, const Axes&, KeepDims)) {
  return [op](const Inputs& x, const Json& args) -> Inputs {
    return {op(x[0], axes_of(args), keep_of(args))};
  };
}
// An op of one result that needs more than its inputs.
template <typename Body>
Call with_args(Body body) {
  return [body](const Inputs& x, const Json& args) -> Inputs { return {body(x, args)}; };
}

Slice range_of(const Json& args) {
  Slice range;
  range.start = args.value("start", range.start);
  range.stop = args.value("stop", range.stop);
  range.step = args.value("step", range.step);
  return range;
}

Inputs split_by(const Inputs& x, const Json& args) {
  if (args.contains("size")) return split(x[0], args["size"].get<int64_t>(), axis_of(args));
  return split(x[0], args.at("sizes").get<std::vector<int64_t>>(), axis_of(args));
}

Inputs run_chain(const Inputs& x, const Json& args);

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> table = {
      {"neg", unary(neg)},
      {"abs", unary(abs)},
      {"sign", unary(sign)},
      {"square", unary(square)},
      {"relu", unary(relu)},
      {"exp", unary(exp)},
      {"log", unary(log)},
      {"sqrt", unary(sqrt)},
      {"rsqrt", unary(rsqrt)},
      {"reciprocal", unary(reciprocal)},
      {"sin", unary(sin)},
      {"cos", unary(cos)},
      {"tanh", unary(tanh)},
      {"sigmoid", unary(sigmoid)},
      {"erf", unary(erf)},
      {"gelu", unary(gelu)},
      {"silu", unary(silu)},
      {"add", binary(add)},
      {"sub", binary(sub)},
      {"mul", binary(mul)},
      {"div", binary(div)},
      {"pow", binary(pow)},
      {"maximum", binary(maximum)},
      {"minimum", binary(minimum)},
      {"equal", binary(equal)},
      {"not_equal", binary(not_equal)},
      {"less", binary(less)},
      {"less_equal", binary(less_equal)},
      {"greater", binary(greater)},
      {"greater_equal", binary(greater_equal)},
      {"add_number", with_args([](auto& x, auto& args) { return x[0] + number_of(args); })},
      {"number_sub", with_args([](auto& x, auto& args) { return number_of(args) - x[0]; })},
      {"number_div", with_args([](auto& x, auto& args) { return number_of(args) / x[0]; })},
      {"pow_number", with_args([](auto& x, auto& args) { return pow(x[0], number_of(args)); })},
      {"number_pow", with_args([](auto& x, auto& args) { return pow(number_of(args), x[0]); })},
      {"where", with_args([](auto& x, auto&) { return where(x[0], x[1], x[2]); })},
      {"sum", reduction(sum)},
      {"mean", reduction(mean)},
      {"max", reduction(max)},
      {"min", reduction(min)},
      {"logsumexp", reduction(logsumexp)},
      {"var", with_args([](auto& x, auto& args) {
         return var(x[0], axes_of(args), keep_of(args),
                    args.at("correction").template get<int64_t>());
       })},
      {"softmax", with_args([](auto& x, auto& args) { return softmax(x[0], axis_of(args)); })},
      {"layer_norm", with_args([](auto& x, auto& args) {
         return layer_norm(x[0], optional_input(x, 1), optional_input(x, 2),
                           args.value("eps", 1e-5));
       })},
      {"cross_entropy", with_args([](auto& x, auto&) { return cross_entropy(x[0], x[1]); })},
      {"cross_entropy_each",
       with_args([](auto& x, auto&) { return cross_entropy_each(x[0], x[1]); })},
      {"linear",
       with_args([](auto& x, auto&) { return linear(x[0], x[1], optional_input(x, 2)); })},
      {"matmul", with_args([](auto& x, auto&) { return matmul(x[0], x[1]); })},
      {"gather", with_args([](auto& x, auto& args) { return gather(x[0], axis_of(args), x[1]); })},
      {"scatter_add",
       with_args([](auto& x, auto& args) { return scatter_add(x[0], axis_of(args), x[1], x[2]); })},
      {"embedding", with_args([](auto& x, auto&) { return embedding(x[0], x[1]); })},
      {"tril", with_args([](auto& x, auto& args) { return tril(x[0], args.at("diagonal")); })},
      {"triu", with_args([](auto& x, auto& args) { return triu(x[0], args.at("diagonal")); })},
      {"concat", with_args([](auto& x, auto& args) { return concat(x, axis_of(args)); })},
      {"split", split_by},
      {"cast", with_args([](auto& x, auto& args) {
         return cast(x[0], parse_dtype(args.at("dtype").template get<std::string>()));
       })},
      {"transpose",
       with_args([](auto& x, auto& args) { return transpose(x[0], args.at("a"), args.at("b")); })},
      {"permute", with_args([](auto& x, auto& args) { return permute(x[0], axes_of(args)); })},
      {"slice",
       with_args([](auto& x, auto& args) { return slice(x[0], axis_of(args), range_of(args)); })},
      {"select", with_args([](auto& x, auto& args) {
         return select(x[0], axis_of(args), args.at("index"));
       })},
      {"expand", with_args([](auto& x, auto& args) { return expand(x[0], shape_of(args)); })},
      {"squeeze", with_args([](auto& x, auto& args) { return squeeze(x[0], axis_of(args)); })},
      {"unsqueeze", with_args([](auto& x, auto& args) { return unsqueeze(x[0], axis_of(args)); })},
      {"unfold", with_args([](auto& x, auto& args) {
         return unfold(x[0], axis_of(args), args.at("size"), args.at("step"));
       })},
      {"view", with_args([](auto& x, auto& args) { return view(x[0], shape_of(args)); })},
      {"reshape", with_args([](auto& x, auto& args) { return reshape(x[0], shape_of(args)); })},
      {"chain", run_chain},
  };
  return table;
}

// One op after another, each with its arguments.
Inputs run_chain(const Inputs& x, const Json& args) {
  Inputs values = x;
  for (const Json& step : args.at("steps")) {
    values = calls().at(step.at("op").get<std::string>())(values, step);
  }
  return values;
}

std::vector<Json> load_cases() {
  std::vector<Json> cases;
  for (const char* file : {"elementwise", "networks", "indexing"}) {
    const Json fixture = fixture::load(file);
    cases.insert(cases.end(), fixture.at("cases").begin(), fixture.at("cases").end());
  }
  return cases;
}

// What torch takes and brrr refuses on purpose.
struct Refusal {
  std::string_view op, name, reason;
};
constexpr std::string_view kNoAxes = "a scalar has no axes; torch calls its only element axis 0";
constexpr Refusal kRefusals[] = {
    {"gather", "[] 0 []", kNoAxes},
    {"scatter_add", "[] 0 []", kNoAxes},
    {"softmax", "[] 0", kNoAxes},
    {"scatter_add", "index smaller than source",
     "a source element without an index is a mistake more often than a wish; torch drops it, and "
     "cannot differentiate the call"},
};

// Why brrr must refuse this case; empty where it must not.
std::string_view reason_to_refuse(const Json& test) {
  if (test.contains("refused")) return "torch refuses this";
  for (const Refusal& refusal : kRefusals) {
    if (test.at("op") == refusal.op && test.at("name") == refusal.name) return refusal.reason;
  }
  return "";
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

// Tensors like `like` with the elements that the fixture lists.
Inputs tensors_like(const Inputs& like, const Json& lists) {
  Inputs result;
  for (size_t i = 0; i < like.size(); ++i) {
    result.push_back(fixture::tensor_of(like[i].shape(), lists.at(i), like[i].dtype()));
  }
  return result;
}

// The sum of products that has `seeds` as its gradient: what torch calls grad_outputs.
Tensor weighted_total(const Inputs& outputs, const Inputs& seeds) {
  Tensor total;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    const Tensor term = sum(outputs[i] * seeds[i]);
    total = total.defined() ? total + term : term;
  }
  return total;
}

void expect_outputs(const Inputs& outputs, const Json& expected, DType main) {
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DType dtype = dtype_of_input(expected[i], main);
    EXPECT_EQ(to_text(outputs[i].dtype()), to_text(dtype));
    EXPECT_EQ(outputs[i].shape(), fixture::sizes(expected[i].at("shape")));
    EXPECT_TRUE(fixture::near(outputs[i], expected[i].at("values"), fixture::tolerance_of(dtype)))
        << "output " << i;
  }
}

void expect_grads(const Inputs& grads, const Json& expected, const char* which) {
  ASSERT_EQ(grads.size(), expected.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    EXPECT_TRUE(fixture::near(grads[i], expected[i], fixture::tolerance_of(grads[i].dtype())))
        << which << " " << i;
  }
}

// A gradient of 16-bit floats rounds after every op of its rule, so it has no tolerance that says
// anything; the rules are the same for all floats.
bool checks_grads(const Json& test, DType main) {
  return test.contains("grads") && (main == DType::f64 || main == DType::f32);
}

void run_case(const Json& test, DType main) {
  const Call& call = calls().at(test.at("op").get<std::string>());
  const Json args = test.value("args", Json::object());
  const Inputs inputs = make_inputs(test, main);
  if (const std::string_view reason = reason_to_refuse(test); !reason.empty()) {
    EXPECT_NE(fixture::error_of([&] { call(inputs, args); }), "") << reason;
    return;
  }
  if (!checks_grads(test, main)) return expect_outputs(call(inputs, args), test["outputs"], main);
  Inputs leaves;
  for (const Tensor& x : inputs) {
    if (is_float(x.dtype())) leaves.push_back(x.require_grad());
  }
  const Inputs outputs = call(inputs, args);
  expect_outputs(outputs, test["outputs"], main);
  if (testing::Test::HasFatalFailure()) return;
  const Inputs seeds = tensors_like(outputs, test["seeds"]);
  const bool second = test.contains("second");
  const Inputs grads =
      outputs.size() == 1
          ? grad(outputs[0], leaves, {.seed = seeds[0], .create_graph = second})
          : grad(weighted_total(outputs, seeds), leaves, {.seed = {}, .create_graph = second});
  expect_grads(grads, test["grads"], "gradient of input");
  if (!second) return;
  const Tensor total = weighted_total(grads, tensors_like(grads, test["second_seeds"]));
  expect_grads(grad(total, leaves), test["second"], "second derivative of input");
}

class TorchValues : public testing::TestWithParam<std::string> {};

TEST_P(TorchValues, AndGradientsAgree) {
  int count = 0;
  for (const Json& test : load_cases()) {
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

INSTANTIATE_TEST_SUITE_P(Ops, TorchValues, testing::ValuesIn(op_names()),
                         [](const auto& test) { return test.param; });

TEST(TorchFixtures, EveryCaseNamesAnOpThatTheTestCalls) {
  for (const Json& test : load_cases()) {
    EXPECT_TRUE(calls().contains(test.at("op").get<std::string>())) << test.at("op");
  }
}

}  // namespace
}  // namespace brrr
