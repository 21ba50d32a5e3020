// A tensor is a layout over storage: element (i, j) lies at offset + i * stride0 + j * stride1.
// Views change the layout and cost nothing; copies cost bytes and time.
#include <fmt/format.h>

#include <algorithm>

#include "brrr/brrr.h"
#include "brrr/report/claims.h"

using namespace brrr;

namespace {

std::string values(const Tensor& x) {
  std::string text;
  for (double value : x.to_vector<double>())
    text += fmt::format("{}{:g}", text.empty() ? "" : " ", value);
  return text;
}

bool strides() {
  const Tensor x = reshape(arange(16), {4, 4});
  report::Claims claims("Where element (1, 2) of a 4 x 4 tensor is");
  claims.equal("strides", to_text(x.strides()), "[4, 1]");
  claims.equal("position 1 * 4 + 2 * 1", 1 * x.strides()[0] + 2 * x.strides()[1], 6);
  claims.equal("element there", x[1][2].item<int64_t>(), 6);
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

bool views() {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  struct View {
    std::string text;
    Tensor y;
    std::string expected;
  };
  const View all[] = {{"x[0]", x[0], "1 2 3"},
                      {"select(x, 1, 1), a column", select(x, 1, 1), "2 5"},
                      {"view(x, {3, 2})", view(x, {3, 2}), "1 2 3 4 5 6"},
                      {"transpose(x)", transpose(x), "1 4 2 5 3 6"}};
  const Bytes before = ledger().live();
  CostCounter counter;
  report::Table table(
      {"view of [[1, 2, 3], [4, 5, 6]]", "values", "shape", "strides", "offset", "same storage"});
  report::Claims claims("Views are free");
  for (const View& row : all) {
    table.row(row.text, values(row.y), to_text(row.y.shape()), to_text(row.y.strides()),
              row.y.offset(), shares_storage(x, row.y));
    claims.equal(row.text, values(row.y), row.expected);
    claims.holds("  shares storage with x", "", shares_storage(x, row.y));
  }
  fmt::print("{}\n", table.text());
  for (int i = 0; i < 3; ++i) transpose(view(x[0], {3, 1}));
  claims.equal("bytes that views take", ledger().live() - before, 0_B);
  claims.equal("FLOPs that views take", counter.total().flops, 0);

  const Tensor y = transpose(x);
  x[0][0].fill(100);
  claims.equal("after x[0][0] = 100 the view has", values(y), "100 4 2 5 3 6");
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

bool copies() {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  const Tensor y = transpose(x);
  std::string refusal = "(it was not refused)";
  try {
    view(y, {2, 3});
  } catch (const Error& error) {
    refusal = error.what();
  }
  report::Claims claims("A transpose has no view as {2, 3}: it must be copied");
  claims.holds("transpose(x) is contiguous", y.is_contiguous() ? "yes" : "no", !y.is_contiguous());
  claims.holds("view(y, {2, 3}) is refused for its strides", "",
               refusal.find("stride") != std::string::npos);
  CostCounter counter;
  const Bytes before = ledger().live();
  const Tensor z = view(contiguous(y), {2, 3});
  claims.equal("view(contiguous(y), {2, 3})", values(z), "1 4 2 5 3 6");
  claims.holds("  has its own storage", "", !shares_storage(x, z));
  claims.equal("  takes bytes", ledger().live() - before, 24_B);
  claims.equal("  reads and writes",
               Bytes(counter.total().bytes_read + counter.total().bytes_written), 48_B);
  fmt::print("{}  The refusal, with its way out:\n    {}\n\n", claims.text(), refusal);
  return claims.all_hold();
}

bool elementwise() {
  const Tensor x = tensor({1, 4, 9});
  report::Claims claims("Elementwise on [1, 4, 9]");
  claims.equal("pow(x, 2)", values(pow(x, 2)), "1 16 81");
  claims.equal("sqrt(x)", values(sqrt(x)), "1 2 3");
  claims.equal("rsqrt(x)", values(rsqrt(x)), "1 0.5 0.333333");
  claims.equal("x + x", values(x + x), "2 8 18");
  claims.equal("x * 2", values(x * 2), "2 8 18");
  claims.equal("x / 0.5", values(x / 0.5), "2 8 18");
  claims.equal("sqrt of integers is", to_text(sqrt(tensor({1, 4, 9}, DType::i64)).dtype()), "f32");
  claims.equal("triu(ones({3, 3}))", values(triu(ones({3, 3}))), "1 1 1 0 1 1 0 0 1");
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

bool products() {
  report::Claims claims("Products: one tensor of tokens, each with its features");
  claims.equal("(16, 32) @ (32, 2)", to_text(matmul(ones({16, 32}), ones({32, 2})).shape()),
               "[16, 2]");
  const Tensor batched = matmul(ones({4, 8, 16, 32}), ones({32, 2}));
  claims.equal("(4, 8, 16, 32) @ (32, 2)", to_text(batched.shape()), "[4, 8, 16, 2]");
  claims.near("  every element", min(batched).item<double>(), 32, 0);
  fmt::print("{}", claims.text());
  return claims.all_hold();
}

}  // namespace

int main() {
  const bool good[] = {strides(), views(), copies(), elementwise(), products()};
  return std::ranges::count(good, false) == 0 ? 0 : 1;
}
