// Which shapes go together, and what comes out, against PyTorch (tests/fixtures/broadcast.json).
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;
using fixture::sizes;

// 0 step 2*step ... under a shape, so that a result tells which elements met.
Tensor counted(const Shape& shape, double step) {
  const Tensor x = empty(shape, DType::f64);
  for (int64_t i = 0; i < x.numel(); ++i) store_float(x, i, step * static_cast<double>(i));
  return x;
}

// Runs `call` and compares the shape of its result, or the fact of an Error.
template <typename Call>
void expect_shape(const Json& expected, Call call) {
  Tensor result;
  const std::string error = fixture::error_of([&] { result = call(); });
  if (expected == "refused") {
    EXPECT_NE(error, "") << "torch refuses this; ours has shape " << join_text(result.shape());
  } else {
    ASSERT_EQ(error, "");
    EXPECT_EQ(result.shape(), sizes(expected));
  }
}

template <typename Visit>
void for_each_case(const char* list, size_t at_least, Visit visit) {
  const Json fixture = fixture::load("broadcast");
  EXPECT_GE(fixture.at(list).size(), at_least);
  for (const Json& test : fixture.at(list)) {
    SCOPED_TRACE(test.dump());
    visit(test);
  }
}

TEST(TorchBroadcast, BinaryOpsPairTheSameElements) {
  for_each_case("pairs", 60, [](const Json& test) {
    const Tensor a = counted(sizes(test["a"]), 1), b = counted(sizes(test["b"]), 100);
    expect_shape(test["shape"], [&] { return a - b; });
    expect_shape(test["shape"], [&] { return b < a; });  // either order
    if (test["shape"] == "refused") return;
    EXPECT_TRUE(fixture::near(a - b, test["values"], {0, 0}));  // small whole numbers are exact
  });
}

TEST(TorchBroadcast, GradientsHaveTheShapesOfTheirOperands) {
  for_each_case("pairs", 60, [](const Json& test) {
    if (test["shape"] == "refused") return;
    const Tensor a = counted(sizes(test["a"]), 1), b = counted(sizes(test["b"]), 1);
    a.require_grad();
    b.require_grad();
    const Tensor y = a + b;
    sum(y).backward();
    for (const Tensor& x : {a, b}) {  // each element of an operand went into as many results
      EXPECT_EQ(x.grad().shape(), x.shape());
      const double uses =
          x.numel() == 0 ? 0 : static_cast<double>(y.numel()) / static_cast<double>(x.numel());
      for (double g : x.grad().to_vector<double>()) EXPECT_EQ(g, uses);
    }
  });
}

TEST(TorchBroadcast, WhereTakesThreeShapes) {
  for_each_case("where", 10, [](const Json& test) {
    const Tensor condition = zeros(sizes(test["condition"]), {.dtype = DType::boolean});
    const Tensor a = counted(sizes(test["a"]), 1), b = counted(sizes(test["b"]), 1);
    expect_shape(test["shape"], [&] { return where(condition, a, b); });
  });
}

TEST(TorchBroadcast, ExpandGrowsWhatTorchGrows) {
  for_each_case("expand", 20, [](const Json& test) {
    const Tensor x = counted(sizes(test["from"]), 1);
    expect_shape(test["shape"], [&] { return expand(x, sizes(test["to"])); });
  });
}

TEST(TorchBroadcast, MatmulTakesVectorsAndBatches) {
  for_each_case("matmul", 30, [](const Json& test) {
    const Tensor a = counted(sizes(test["a"]), 1), b = counted(sizes(test["b"]), 1);
    expect_shape(test["shape"], [&] { return matmul(a, b); });
  });
}

}  // namespace
}  // namespace brrr
