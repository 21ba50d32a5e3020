// Axes by name: what a product, a reduction or a reshape means is read from the pattern, not from
// axis numbers. Beside each, the way without names, and shapes in signatures that are checked.
#include <fmt/format.h>

#include <algorithm>

#include "brrr/brrr.h"
#include "brrr/report/claims.h"

using namespace brrr;

namespace {

bool all_are(const Tensor& x, double value) {
  return min(x).item<double>() == value && max(x).item<double>() == value;
}

bool product() {
  const Tensor x = ones({2, 3, 4});  // batch seq1 hidden
  const Tensor y = ones({2, 3, 4});  // batch seq2 hidden
  const Tensor old_way = matmul(x, transpose(y, -2, -1));
  const Tensor z = einsum("batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2", {x, y});
  const Tensor any_batch = einsum("... seq1 hidden, ... seq2 hidden -> ... seq1 seq2", {x, y});
  report::Claims claims("einsum: a product with its axes named");
  claims.equal("matmul(x, transpose(y, -2, -1))", to_text(old_way.shape()), "[2, 3, 3]");
  claims.equal("batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2", to_text(z.shape()),
               "[2, 3, 3]");
  claims.holds("  every element is 4", "", all_are(z, 4));
  claims.equal("... seq1 hidden, ... seq2 hidden -> ... seq1 seq2", to_text(any_batch.shape()),
               "[2, 3, 3]");
  claims.holds("  every element is 4", "", all_are(any_batch, 4));
  claims.holds("  all three are equal", "", all_are(abs(z - old_way) + abs(z - any_batch), 0));
  CostCounter counter;
  einsum("batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2", {x, y});
  claims.equal("FLOPs, 2 * batch * seq1 * seq2 * hidden", counter.total().flops, 2 * 2 * 3 * 3 * 4);
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

bool reduction() {
  const Tensor x = ones({2, 3, 4});  // batch seq hidden
  const Tensor old_way = mean(x, {-1});
  const Tensor y = reduce(x, "... hidden -> ...", Reduce::sum);
  report::Claims claims("reduce: the axis that goes is the one that is missing on the right");
  claims.equal("mean(x, {-1})", to_text(old_way.shape()), "[2, 3]");
  claims.holds("  every element is 1", "", all_are(old_way, 1));
  claims.equal("... hidden -> ..., sum", to_text(y.shape()), "[2, 3]");
  claims.holds("  every element is 4: a sum is not a mean", "", all_are(y, 4));
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

bool heads() {
  const Tensor x = ones({2, 3, 8});  // batch seq (heads hidden1)
  const Tensor w = ones({4, 4});     // hidden1 hidden2
  const Tensor split = rearrange(x, "... (heads hidden1) -> ... heads hidden1", {{"heads", 2}});
  const Tensor mixed = einsum("... hidden1, hidden1 hidden2 -> ... hidden2", {split, w});
  const Tensor merged = rearrange(mixed, "... heads hidden2 -> ... (heads hidden2)");
  report::Claims claims("rearrange: one axis is two, worked on, and one again");
  claims.equal("... (heads hidden1) -> ... heads hidden1", to_text(split.shape()), "[2, 3, 2, 4]");
  claims.holds("  is a view", "", shares_storage(x, split));
  claims.equal("... hidden1, hidden1 hidden2 -> ... hidden2", to_text(mixed.shape()),
               "[2, 3, 2, 4]");
  claims.holds("  every element is 4", "", all_are(mixed, 4));
  claims.equal("... heads hidden2 -> ... (heads hidden2)", to_text(merged.shape()), "[2, 3, 8]");
  claims.holds("  every element is 4", "", all_are(merged, 4));
  claims.holds("  is a view", "", shares_storage(mixed, merged));
  const Tensor row = repeat(tensor({1, 2, 3}), "n -> copies n", {{"copies", 1000}});
  claims.equal("n -> copies n, 1000 of them", to_text(row.shape()), "[1000, 3]");
  claims.equal("  take bytes", Bytes(row.storage().bytes()), 12_B);
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

// In the lecture an annotation is documentation; here it is held.
bool signatures() {
  const auto project =
      checked([](Shaped<"batch seq hidden"> x, Shaped<"hidden out"> w) -> Shaped<"batch seq out"> {
        return matmul(x, w);
      });
  report::Claims claims("Shapes in signatures");
  claims.equal("(2, 3, 4) @ (4, 5)", to_text(project(ones({2, 3, 4}), ones({4, 5})).shape()),
               "[2, 3, 5]");
  std::string refusal = "(it was not refused)";
  try {
    project(ones({2, 3, 4}), ones({5, 4}));
  } catch (const Error& error) {
    refusal = error.what();
  }
  if (kShapeChecks)
    claims.holds("(2, 3, 4) @ (5, 4) is refused by name", "",
                 refusal.find("\"hidden\" is 5") != std::string::npos);
  fmt::print("{}  The refusal:\n{}\n", claims.text(), refusal);
  return claims.all_hold();
}

}  // namespace

int main() {
  const bool good[] = {product(), reduction(), heads(), signatures()};
  return std::ranges::count(good, false) == 0 ? 0 : 1;
}
