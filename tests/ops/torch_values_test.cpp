// Values and gradients of every op against PyTorch's, first and for some ops second derivatives.
// The cases are data (elementwise, networks and indexing in tests/fixtures); here is how each op is
// called.
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "fixtures/op_cases.h"

namespace brrr {
namespace {

using fixture::axes_of;
using fixture::axis_of;
using fixture::binary;
using fixture::Calls;
using fixture::Inputs;
using fixture::Json;
using fixture::keep_of;
using fixture::optional_input;
using fixture::reduction;
using fixture::unary;

Shape shape_of(const Json& args) { return fixture::sizes(args.at("shape")); }
Arg number_of(const Json& args) {
  const Json& number = args.at("number");
  return number.is_number_integer() ? Arg(number.get<int64_t>()) : Arg(number.get<double>());
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

const Calls& calls() {
  static const Calls table = {
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
      {"add_number", [](auto& x, auto& args) { return x[0] + number_of(args); }},
      {"number_sub", [](auto& x, auto& args) { return number_of(args) - x[0]; }},
      {"number_div", [](auto& x, auto& args) { return number_of(args) / x[0]; }},
      {"pow_number", [](auto& x, auto& args) { return pow(x[0], number_of(args)); }},
      {"number_pow", [](auto& x, auto& args) { return pow(number_of(args), x[0]); }},
      {"where", [](auto& x, auto&) { return where(x[0], x[1], x[2]); }},
      {"sum", reduction(sum)},
      {"mean", reduction(mean)},
      {"max", reduction(max)},
      {"min", reduction(min)},
      {"logsumexp", reduction(logsumexp)},
      {"var",
       [](auto& x, auto& args) {
         return var(x[0], axes_of(args), keep_of(args),
                    args.at("correction").template get<int64_t>());
       }},
      {"softmax", [](auto& x, auto& args) { return softmax(x[0], axis_of(args)); }},
      {"layer_norm",
       [](auto& x, auto& args) {
         return layer_norm(x[0], optional_input(x, 1), optional_input(x, 2),
                           args.value("eps", 1e-5));
       }},
      {"cross_entropy", [](auto& x, auto&) { return cross_entropy(x[0], x[1]); }},
      {"cross_entropy_each", [](auto& x, auto&) { return cross_entropy_each(x[0], x[1]); }},
      {"linear", [](auto& x, auto&) { return linear(x[0], x[1], optional_input(x, 2)); }},
      {"matmul", [](auto& x, auto&) { return matmul(x[0], x[1]); }},
      {"gather", [](auto& x, auto& args) { return gather(x[0], axis_of(args), x[1]); }},
      {"scatter_add",
       [](auto& x, auto& args) { return scatter_add(x[0], axis_of(args), x[1], x[2]); }},
      {"embedding", [](auto& x, auto&) { return embedding(x[0], x[1]); }},
      {"tril", [](auto& x, auto& args) { return tril(x[0], args.at("diagonal")); }},
      {"triu", [](auto& x, auto& args) { return triu(x[0], args.at("diagonal")); }},
      {"concat", [](auto& x, auto& args) { return concat(x, axis_of(args)); }},
      {"split", split_by},
      {"cast",
       [](auto& x, auto& args) {
         return cast(x[0], parse_dtype(args.at("dtype").template get<std::string>()));
       }},
      {"transpose",
       [](auto& x, auto& args) { return transpose(x[0], args.at("a"), args.at("b")); }},
      {"permute", [](auto& x, auto& args) { return permute(x[0], axes_of(args)); }},
      {"slice", [](auto& x, auto& args) { return slice(x[0], axis_of(args), range_of(args)); }},
      {"select", [](auto& x, auto& args) { return select(x[0], axis_of(args), args.at("index")); }},
      {"expand", [](auto& x, auto& args) { return expand(x[0], shape_of(args)); }},
      {"squeeze", [](auto& x, auto& args) { return squeeze(x[0], axis_of(args)); }},
      {"unsqueeze", [](auto& x, auto& args) { return unsqueeze(x[0], axis_of(args)); }},
      {"unfold",
       [](auto& x, auto& args) {
         return unfold(x[0], axis_of(args), args.at("size"), args.at("step"));
       }},
      {"view", [](auto& x, auto& args) { return view(x[0], shape_of(args)); }},
      {"reshape", [](auto& x, auto& args) { return reshape(x[0], shape_of(args)); }},
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

const std::vector<Json>& cases() {
  static const std::vector<Json> all = fixture::load_cases({"elementwise", "networks", "indexing"});
  return all;
}

// What torch takes and brrr refuses on purpose.
constexpr std::string_view kNoAxes = "a scalar has no axes; torch calls its only element axis 0";
constexpr fixture::Refusal kRefusals[] = {
    {"gather", "[] 0 []", kNoAxes},
    {"scatter_add", "[] 0 []", kNoAxes},
    {"softmax", "[] 0", kNoAxes},
    {"scatter_add", "index smaller than source",
     "a source element without an index is a mistake more often than a wish; torch drops it, and "
     "cannot differentiate the call"},
};

class TorchValues : public testing::TestWithParam<std::string> {};

TEST_P(TorchValues, AndGradientsAgree) {
  fixture::expect_agreement(GetParam(), cases(), calls(), kRefusals);
}

INSTANTIATE_TEST_SUITE_P(Ops, TorchValues, testing::ValuesIn(fixture::names_of(calls())),
                         [](const auto& test) { return test.param; });

TEST(TorchFixtures, EveryCaseNamesAnOpThatTheTestCalls) {
  fixture::expect_all_called(cases(), calls());
}

}  // namespace
}  // namespace brrr
