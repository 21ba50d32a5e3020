// The dtype of a result, for every pair of dtypes as tensors, 0-d tensors and numbers, against
// PyTorch (tests/fixtures/promotion.json).
#include <gtest/gtest.h>

#include "brrr/brrr.h"
#include "fixtures/fixture.h"

namespace brrr {
namespace {

using fixture::Json;

// "f32[2]" and "f32[]" are tensors; "int", "float" and "bool" are numbers of the host language.
struct Operand {
  std::string name;
  Tensor tensor;  // undefined for a number

  explicit Operand(std::string text) : name(std::move(text)) {
    const size_t bracket = name.find('[');
    if (bracket == std::string::npos) return;
    const Shape shape = name.ends_with("[2]") ? Shape{2} : Shape{};
    tensor = ones(shape, {.dtype = parse_dtype(name.substr(0, bracket))});
  }
  Arg arg() const {
    if (tensor.defined()) return tensor;
    if (name == "float") return 1.5;
    return name == "int" ? Arg(1) : Arg(true);
  }
};

Tensor apply(const std::string& op, const Arg& a, const Arg& b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "div") return a / b;
  if (op == "pow") return pow(a, b);
  if (op == "maximum") return maximum(a, b);
  if (op == "less") return a < b;
  if (op == "where") return where(tensor({1, 0}, DType::boolean), a, b);
  throw std::runtime_error("fixture: no op " + op);
}

// "f32", or "refused" where ours throws Error.
template <typename Call>
std::string dtype_of_result(Call call) {
  std::string dtype;
  return fixture::error_of([&] { dtype = to_text(call().dtype()); }).empty() ? dtype : "refused";
}

// The dtype to expect where torch gives `torch` and its sum of the same operands has dtype `sum`.
// Deliberate differences:
//   sub       torch refuses every bool operand; ours counts it as 0 or 1, as `add` does, and
//             refuses the difference of two
//   maximum   torch takes tensors only; ours takes numbers too, typed as in `add`
//   pow       torch takes a bool tensor to the power of the number True and refuses the other
//             powers of bools; ours refuses them all
std::string expected_dtype(const std::string& op, const std::string& torch,
                           const std::string& sum) {
  if (op == "pow" && sum == "bool") return "refused";
  if (op == "sub" && sum == "bool") return "refused";
  if ((op == "sub" || op == "maximum") && torch == "refused") return sum;
  return torch;
}

class TorchPromotion : public testing::TestWithParam<std::string> {};

TEST_P(TorchPromotion, Agrees) {
  const std::string& op = GetParam();
  const Json fixture = fixture::load("promotion");
  std::vector<Operand> operands;
  for (const Json& name : fixture.at("operands")) operands.emplace_back(name.get<std::string>());
  ASSERT_EQ(operands.size(), 23U);  // ten dtypes in two ranks, three numbers
  for (const Operand& a : operands) {
    const Json& row = fixture.at("binary").at(op + " " + a.name);
    const Json& sums = fixture.at("binary").at("add " + a.name);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& b = operands[i];
      if (row[i] == "numbers") continue;  // no tensor takes part
      EXPECT_EQ(dtype_of_result([&] { return apply(op, a.arg(), b.arg()); }),
                expected_dtype(op, row[i], sums[i]))
          << op << "(" << a.name << ", " << b.name << ")";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, TorchPromotion,
                         testing::Values("add", "sub", "mul", "div", "pow", "maximum", "less",
                                         "where"),
                         [](const auto& test) { return test.param; });

using Unary = Tensor (*)(const Tensor&);
constexpr std::pair<const char*, Unary> kUnary[] = {
    {"neg", neg},   {"abs", abs},  {"sign", sign}, {"square", square},   {"relu", relu},
    {"exp", exp},   {"log", log},  {"sqrt", sqrt}, {"rsqrt", rsqrt},     {"reciprocal", reciprocal},
    {"sin", sin},   {"cos", cos},  {"tanh", tanh}, {"sigmoid", sigmoid}, {"erf", erf},
    {"gelu", gelu}, {"silu", silu}};

// Deliberate differences: gelu and silu take integers and bools as exp does, torch's do not; sign
// and square refuse bools as neg, abs and relu do, torch's do not.
std::string expected_dtype(const Json& unary, const std::string& op, size_t dtype) {
  if (op == "gelu" || op == "silu") return unary.at("exp")[dtype];
  if (op == "sign" || op == "square") return unary.at("neg")[dtype];
  return unary.at(op)[dtype];
}

TEST(TorchPromotionOfOne, UnaryOpsAgree) {
  const Json fixture = fixture::load("promotion");
  EXPECT_EQ(fixture.at("unary").size(), std::size(kUnary));
  for (const auto& [name, op] : kUnary) {
    for (size_t i = 0; i < fixture.at("dtypes").size(); ++i) {
      const std::string dtype = fixture["dtypes"][i].get<std::string>();
      const Tensor x = ones({2}, {.dtype = parse_dtype(dtype)});
      EXPECT_EQ(dtype_of_result([&, op = op] { return op(x); }),
                expected_dtype(fixture["unary"], name, i))
          << name << "(" << dtype << ")";
    }
  }
}

}  // namespace
}  // namespace brrr
