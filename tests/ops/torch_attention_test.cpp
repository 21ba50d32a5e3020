// Values and gradients of attention and rope against PyTorch's. The cases are data
// (tests/fixtures/attention.json, written by make_attention_fixtures.py).
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;

const Json& fixtures() {
  static const Json loaded = fixture::load("attention");
  return loaded;
}

Tensor tensor_in(const Json& listed, DType dtype) {
  return fixture::tensor_of(fixture::sizes(listed.at("shape")), listed.at("values"), dtype);
}

// A list of numbers or of rows of numbers, as i64; undefined for null.
Tensor integers(const Json& list) {
  if (list.is_null()) return {};
  const bool rows = list[0].is_array();
  Json flat = Json::array();
  for (const Json& item : list) {
    if (rows) {
      flat.insert(flat.end(), item.begin(), item.end());
    } else {
      flat.push_back(item);
    }
  }
  const auto count = static_cast<int64_t>(list.size());
  const Shape shape = rows ? Shape{count, static_cast<int64_t>(list[0].size())} : Shape{count};
  return fixture::tensor_of(shape, flat, DType::i64);
}

Tensor call_attention(const std::vector<Tensor>& x, const Json& test) {
  const Json& options = test.at("options");
  AttentionOptions with{.causal = options.at("causal").get<bool>(),
                        .window = options.at("window").get<int64_t>(),
                        .documents = integers(options.at("documents")),
                        .lengths = integers(options.at("lengths"))};
  if (options.contains("scale")) with.scale = options["scale"].get<double>();
  if (test.contains("mask"))
    with.mask = x.size() > 3 ? x[3] : tensor_in(test["mask"], DType::boolean);
  return attention(x[0], x[1], x[2], with);
}

Tensor call_rope(const std::vector<Tensor>& x, const Json& test) {
  return rope(x[0], integers(test.at("positions")),
              {.base = test.at("base").get<double>(),
               .rotary_dim = test.at("rotary_dim").get<int64_t>(),
               .interleaved = test.at("interleaved").get<bool>()});
}

template <typename Call>
void expect_agreement(const char* op, DType dtype, const Call& call) {
  for (const Json& test : fixtures().at(op)) {
    SCOPED_TRACE(std::string(op) + ": " + test.at("name").get<std::string>());
    std::vector<Tensor> leaves;
    for (const Json& input : test.at("inputs"))
      leaves.push_back(tensor_in(input, dtype).require_grad());
    if (test.contains("mask") && !test["mask"].contains("dtype"))  // numbers have a gradient
      leaves.push_back(tensor_in(test["mask"], dtype).require_grad());
    const Tensor out = call(leaves, test);
    EXPECT_EQ(out.shape(), fixture::sizes(test.at("out").at("shape")));
    const fixture::Tolerance tolerance = fixture::tolerance_of(dtype);
    EXPECT_TRUE(fixture::near(out, test.at("out").at("values"), tolerance));
    const std::vector<Tensor> grads =
        grad(out, leaves, {.seed = tensor_in(test.at("seed"), dtype)});
    for (size_t i = 0; i < grads.size(); ++i) {
      EXPECT_TRUE(fixture::near(grads[i], test.at("grads")[i].at("values"), tolerance))
          << "gradient of input " << i;
    }
  }
}

TEST(TorchAttention, ValuesAndGradientsAgreeInF64) {
  expect_agreement("attention", DType::f64, call_attention);
}

TEST(TorchAttention, ValuesAndGradientsAgreeInF32) {
  expect_agreement("attention", DType::f32, call_attention);
}

TEST(TorchAttention, MaskedValuesAndGradientsAgree) {
  expect_agreement("masked", DType::f64, call_attention);
  expect_agreement("masked", DType::f32, call_attention);
}

TEST(TorchRope, ValuesAndGradientsAgreeInF64) { expect_agreement("rope", DType::f64, call_rope); }

TEST(TorchRope, ValuesAndGradientsAgreeInF32) { expect_agreement("rope", DType::f32, call_rope); }

}  // namespace
}  // namespace brrr
