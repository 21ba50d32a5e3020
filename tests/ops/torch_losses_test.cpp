// The options of cross_entropy against PyTorch's values and gradients (tests/fixtures/losses.json), and
// what a fixture cannot say: refusals, rows that nobody counts, second derivatives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "brrr/brrr.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Tensor class_weights_of(const Json& json) {
  if (!json.contains("class_weights")) return {};
  const Json& list = json["class_weights"];
  return fixture::tensor_of({static_cast<int64_t>(list.size())}, list, DType::f64);
}

CrossEntropyOptions options_of(const Json& json) {
  CrossEntropyOptions options{.ignore_index = {},
                              .label_smoothing = json.value("label_smoothing", 0.0),
                              .soft_cap = json.value("soft_cap", 0.0),
                              .z_loss = json.value("z_loss", 0.0)};
  if (json.contains("ignore_index")) options.ignore_index = json["ignore_index"].get<int64_t>();
  options.class_weights = class_weights_of(json);
  return options;
}

Tensor gradient_of(const Tensor& logits, const Tensor& loss) { return grad(loss, {logits})[0]; }

void expect_case(const Json& test, DType dtype) {
  const Shape shape = fixture::sizes(test.at("shape"));
  const Tensor logits = fixture::tensor_of(shape, test.at("logits"), dtype);
  const Tensor targets = fixture::tensor_of({shape[0]}, test.at("targets"), DType::i64);
  const CrossEntropyOptions options = options_of(test.at("options"));
  logits.require_grad();
  const Tensor each = cross_entropy_each(logits, targets, options);
  const Tensor mean_loss = cross_entropy(logits, targets, options);
  const Tensor weights = fixture::tensor_of({shape[0]}, test.at("weights"), each.dtype());
  // Losses of low-precision logits are f32.
  EXPECT_EQ(each.dtype(), dtype == DType::f64 ? DType::f64 : DType::f32);
  const auto tolerance = fixture::tolerance_of(each.dtype());
  EXPECT_TRUE(fixture::near(each, test.at("each"), tolerance));
  EXPECT_TRUE(fixture::near(mean_loss, test.at("mean"), tolerance));
  // A gradient is rounded to the dtype of the logits; small ones are differences of numbers near 1.
  auto of_grads = fixture::tolerance_of(dtype);
  of_grads.absolute = std::max(of_grads.absolute, tolerance.absolute);
  EXPECT_TRUE(fixture::near(gradient_of(logits, mean_loss), test.at("mean_grad"), of_grads));
  EXPECT_TRUE(
      fixture::near(gradient_of(logits, sum(each * weights)), test.at("weighted_grad"), of_grads));
}

TEST(TorchLosses, CrossEntropyOptions) {
  const Json losses = fixture::load("losses");
  for (const Json& test : losses.at("cases")) {
    for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(test.at("options").dump() + " " + to_text(dtype));
      expect_case(test, dtype);
    }
  }
}

void expect_nll(const Json& test, DType dtype) {
  const Shape shape = fixture::sizes(test.at("shape"));
  const Tensor x = fixture::tensor_of(shape, test.at("x"), dtype);
  const Tensor targets = fixture::tensor_of({shape[0]}, test.at("targets"), DType::i64);
  const Json& how = test.at("options");
  NllOptions options{.class_weights = class_weights_of(how)};
  if (how.contains("ignore_index")) options.ignore_index = how["ignore_index"].get<int64_t>();
  x.require_grad();
  const Tensor loss = nll(x, targets, options);
  const auto tolerance = fixture::tolerance_of(loss.dtype());
  EXPECT_TRUE(fixture::near(nll_each(x, targets, options), test.at("each"), tolerance));
  EXPECT_TRUE(fixture::near(loss, test.at("mean"), tolerance));
  EXPECT_TRUE(
      fixture::near(gradient_of(x, loss), test.at("mean_grad"), fixture::tolerance_of(dtype)));
}

TEST(TorchLosses, NllOptions) {
  const Json losses = fixture::load("losses");
  for (const Json& test : losses.at("nll")) {
    for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      SCOPED_TRACE(test.at("options").dump() + " " + to_text(dtype));
      expect_nll(test, dtype);
    }
  }
}

TEST(ClassWeights, AreOnePerClassAndFloats) {
  const Tensor logits = zeros({2, 3}), targets = tensor({0, 1}, DType::i64);
  EXPECT_EQ(
      fixture::error_of([&] { cross_entropy(logits, targets, {.class_weights = ones({2})}); }),
      "cross_entropy: class weights are f32[2]; there must be one float for each of 3 classes");
  EXPECT_EQ(
      fixture::error_of([&] { nll(logits, targets, {.class_weights = ones({3}, DType::i64)}); }),
      "nll: class weights are i64[3]; there must be one float for each of 3 classes");
  EXPECT_THAT(fixture::error_of([&] {
                cross_entropy(logits, targets, {.label_smoothing = 2, .class_weights = ones({3})});
              }),
              HasSubstr("label_smoothing 2"));
}

TEST(ClassWeights, OfOnesChangeNothing) {
  const Tensor logits = tensor({{1, 2, -1}, {0, 3, 0.5}}, DType::f64);
  const Tensor targets = tensor({2, 0}, DType::i64), equal_weights = ones({3}, DType::f64);
  for (CrossEntropyOptions options : {CrossEntropyOptions{},
                                      {.label_smoothing = 0.3, .z_loss = 0.1},
                                      {.ignore_index = 0, .soft_cap = 2}}) {
    const double plain = cross_entropy(logits, targets, options).item<double>();
    options.class_weights = equal_weights;
    EXPECT_NEAR(cross_entropy(logits, targets, options).item<double>(), plain, 1e-14);
  }
}

TEST(ClassWeights, OfNothingThatCountsIsZero) {
  const Tensor logits = tensor({{1, 2}, {3, 4}}), targets = tensor({0, 7}, DType::i64);
  logits.require_grad();
  const Tensor loss =
      cross_entropy(logits, targets, {.ignore_index = 7, .class_weights = tensor({0, 1})});
  loss.backward();
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(logits.grad().to_vector<float>(), std::vector<float>(4, 0));
}

Tensor integers(const Literal& values) { return cast(tensor(values), DType::i64); }

TEST(CrossEntropyOptions, AllIgnoredIsZeroWithoutGradient) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor logits = tensor({{1, kInfinity}, {NAN, 2}});
  logits.require_grad();
  const Tensor loss = cross_entropy(logits, integers({-100, -100}), {.ignore_index = -100});
  loss.backward();
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(logits.grad().to_vector<float>(), std::vector<float>(4, 0));
}

TEST(CrossEntropyOptions, IgnoredRowsMayHoldAnything) {
  const Tensor logits = tensor({{0, 0}, {NAN, 2}}, DType::f64);
  logits.require_grad();
  const Tensor loss =
      cross_entropy(logits, integers({1, 7}),
                    {.ignore_index = 7, .label_smoothing = 0.5, .soft_cap = 2, .z_loss = 0.5});
  // ln 2 + z ln(2)^2, over the one row that counts
  EXPECT_NEAR(loss.item<double>(), std::log(2) + 0.5 * std::log(2) * std::log(2), 1e-15);
  const Tensor first = grad(loss, {logits}, {.create_graph = true})[0];
  EXPECT_EQ(first[1].to_vector<double>(), (std::vector<double>{0, 0}));
  const Tensor second = grad(sum(square(first)), {logits})[0];
  EXPECT_EQ(second[1].to_vector<double>(), (std::vector<double>{0, 0}));
}

TEST(CrossEntropyOptions, LogitsOfAnySizeGiveAFiniteLoss) {
  // Tiles of a row have different maxima: the running sum moves with them.
  const Tensor logits = zeros({1, 3000}, {.dtype = DType::f64});
  logits.data<double>()[10] = -1e300;
  logits.data<double>()[1500] = 800;
  logits.data<double>()[2999] = 1600;
  EXPECT_EQ(cross_entropy(logits, integers({1500})).item<double>(), 800);
}

TEST(CrossEntropyOptions, RefusesWhatIsOutOfBounds) {
  const Tensor logits = zeros({2, 3}), targets = integers({0, 1});
  const auto refusal = [&](const CrossEntropyOptions& options) {
    return fixture::error_of([&] { cross_entropy(logits, targets, options); });
  };
  EXPECT_THAT(refusal({.label_smoothing = 1.5}), HasSubstr("label_smoothing 1.5"));
  EXPECT_THAT(refusal({.label_smoothing = -0.5}), HasSubstr("between 0 and 1"));
  EXPECT_THAT(refusal({.soft_cap = -2}), HasSubstr("soft_cap -2"));
  EXPECT_THAT(refusal({.z_loss = NAN}), HasSubstr("z_loss nan"));
}

TEST(CrossEntropyOptions, NamesATargetThatIsNoClass) {
  const Tensor logits = zeros({2, 3}), targets = integers({0, -100});
  EXPECT_THAT(fixture::error_of([&] { cross_entropy(logits, targets); }),
              AllOf(HasSubstr("target -100 at row 1"), HasSubstr("ignore_index")));
  EXPECT_THAT(fixture::error_of([&] { cross_entropy(logits, targets, {.ignore_index = -1}); }),
              HasSubstr("target -100 at row 1"));
}

}  // namespace
}  // namespace brrr
