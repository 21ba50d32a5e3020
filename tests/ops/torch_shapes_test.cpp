// Values and gradients against PyTorch's for the ops that join, move, pick and sort elements and for
// those that slide windows. The cases are data (tests/fixtures/shapes.json); here is how each op is
// called.
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "fixtures/op_cases.h"

namespace brrr {
namespace {

using fixture::Calls;
using fixture::Inputs;
using fixture::Json;
using fixture::optional_input;

int64_t integer(const Json& args, const char* name) { return args.at(name).get<int64_t>(); }
Axes list(const Json& args, const char* name) { return fixture::sizes(args.at(name)); }
Size2 pair(const Json& args, const char* name, int64_t otherwise) {
  if (!args.contains(name)) return otherwise;
  return {args[name][0].get<int64_t>(), args[name][1].get<int64_t>()};
}
Order order_of(const Json& args) {
  return args.at("descending").get<bool>() ? Order::descending : Order::ascending;
}
Sorted topk_of(const Inputs& x, const Json& args) {
  return topk(x[0], integer(args, "k"), integer(args, "axis"),
              args.at("largest").get<bool>() ? Pick::largest : Pick::smallest);
}
std::optional<AutoPad> auto_pad_of(const Json& args) {
  if (!args.contains("auto_pad")) return {};
  return args["auto_pad"] == "same_upper" ? AutoPad::same_upper : AutoPad::same_lower;
}
Padding1 padding1_of(const Json& args) {
  if (const auto automatic = auto_pad_of(args)) return *automatic;
  if (!args.contains("pads")) return args.value("padding", int64_t{0});
  const Axes pads = list(args, "pads");
  return {pads[0], pads[1]};
}
Padding2 padding2_of(const Json& args) {
  if (const auto automatic = auto_pad_of(args)) return *automatic;
  if (!args.contains("pads")) return pair(args, "padding", 0);
  const Axes pads = list(args, "pads");
  return {pads[0], pads[1], pads[2], pads[3]};
}
Tensor conv1d_of(const Inputs& x, const Json& args) {
  return conv1d(x[0], x[1], optional_input(x, 2),
                {.stride = args.value("stride", int64_t{1}),
                 .padding = padding1_of(args),
                 .dilation = args.value("dilation", int64_t{1}),
                 .groups = args.value("groups", int64_t{1})});
}
Tensor conv2d_of(const Inputs& x, const Json& args) {
  return conv2d(x[0], x[1], optional_input(x, 2),
                {.stride = pair(args, "stride", 1),
                 .padding = padding2_of(args),
                 .dilation = pair(args, "dilation", 1),
                 .groups = args.value("groups", int64_t{1})});
}
Pool2dOptions pool_of(const Json& args) {
  return {.kernel = pair(args, "kernel", 1),
          .stride = pair(args, "stride", 0),
          .padding = padding2_of(args),
          .ceil_mode = args.value("ceil_mode", false),
          .count_include_pad = args.value("count_include_pad", true)};
}

const Calls& calls() {
  static const Calls table = {
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
      {"scatter",
       [](auto& x, auto& args) { return scatter(x[0], integer(args, "axis"), x[1], x[2]); }},
      {"conv1d", conv1d_of},
      {"conv2d", conv2d_of},
      {"max_pool2d", [](auto& x, auto& args) { return max_pool2d(x[0], pool_of(args)); }},
      {"avg_pool2d", [](auto& x, auto& args) { return avg_pool2d(x[0], pool_of(args)); }},
  };
  return table;
}

const std::vector<Json>& cases() {
  static const std::vector<Json> all = fixture::load_cases({"shapes"});
  return all;
}

class TorchShapes : public testing::TestWithParam<std::string> {};

TEST_P(TorchShapes, ValuesAndGradientsAgree) {
  fixture::expect_agreement(GetParam(), cases(), calls());
}

INSTANTIATE_TEST_SUITE_P(Ops, TorchShapes, testing::ValuesIn(fixture::names_of(calls())),
                         [](const auto& test) { return test.param; });

TEST(TorchShapesFixture, EveryCaseNamesAnOpThatTheTestCalls) {
  fixture::expect_all_called(cases(), calls());
}

}  // namespace
}  // namespace brrr
