// Reductions over many shapes, axes and dtypes, empty ones, NaN and infinity among them, against
// PyTorch (tests/fixtures/reduce.json). max and min are torch's amax and amin.
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;

Tensor reduce(const std::string& op, const Tensor& x, const Axes& axes, KeepDims keep) {
  if (op == "sum") return sum(x, axes, keep);
  if (op == "mean") return mean(x, axes, keep);
  if (op == "max") return max(x, axes, keep);
  if (op == "min") return min(x, axes, keep);
  if (op == "var0") return var(x, axes, keep, 0);
  if (op == "var1") return var(x, axes, keep);  // Bessel's correction is the default
  if (op == "logsumexp") return logsumexp(x, axes, keep);
  if (op == "argmax") return axes.empty() ? argmax(x) : argmax(x, axes[0], keep);
  throw std::runtime_error("fixture: no reduction " + op);
}

// Deliberate differences:
//   logsumexp   asks for a float tensor, as mean and var do; torch takes integers here
//   argmax      takes bools, which torch refuses: tested below
Json expected_values(const std::string& op, const Json& line) {
  if (op == "logsumexp" && line["results"]["mean"] == "refused") return "refused";
  return line["results"][op];
}

void expect_result(const std::string& op, const Json& line, const Tensor& x) {
  const Json expected = expected_values(op, line);
  const KeepDims keep = line["keep"].get<bool>() ? KeepDims::yes : KeepDims::no;
  Tensor y;
  const std::string error =
      fixture::error_of([&] { y = reduce(op, x, fixture::sizes(line["axes"]), keep); });
  if (expected == "refused") {
    EXPECT_NE(error, "") << "torch refuses this";
    return;
  }
  ASSERT_EQ(error, "");
  const DType dtype = parse_dtype(line["dtypes"].value(op, line["dtype"].get<std::string>()));
  EXPECT_EQ(to_text(y.dtype()), to_text(dtype));
  EXPECT_EQ(y.shape(), fixture::sizes(line["shape"]));
  EXPECT_TRUE(fixture::near(y, expected, fixture::tolerance_of(dtype)));
}

class TorchReduce : public testing::TestWithParam<std::string> {};

TEST_P(TorchReduce, Agrees) {
  const std::string& op = GetParam();
  int count = 0;
  const Json fixture = fixture::load("reduce");
  for (const Json& line : fixture.at("lines")) {
    const DType dtype = parse_dtype(line["dtype"].get<std::string>());
    if (!line["results"].contains(op)) continue;
    if (op == "argmax" && dtype == DType::boolean) continue;
    SCOPED_TRACE(op + " of " + line.dump());
    ++count;
    expect_result(op, line,
                  fixture::tensor_of(fixture::sizes(line["input_shape"]), line["input"], dtype));
  }
  EXPECT_GT(count, 100);
}

INSTANTIATE_TEST_SUITE_P(Ops, TorchReduce,
                         testing::Values("sum", "mean", "max", "min", "var0", "var1", "logsumexp",
                                         "argmax"),
                         [](const auto& test) { return test.param; });

TEST(TorchArgmax, OfBoolsFindsTheFirstTrue) {
  const Tensor x = tensor({{0, 1, 1}, {0, 0, 0}}, DType::boolean);
  EXPECT_EQ(argmax(x, 1).to_vector<int>(), (std::vector<int>{1, 0}));
  EXPECT_EQ(argmax(x).item<int>(), 1);
}

}  // namespace
}  // namespace brrr
