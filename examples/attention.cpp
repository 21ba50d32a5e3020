// Attention from nothing: the formula by hand, the same by the library, and a task that needs it.
//
//   scores  = q k^T / sqrt(d)        how well each query fits each key          [queries, keys]
//   weights = softmax(scores)        each row sums to 1                         [queries, keys]
//   out     = weights v              what is read, mixed by the weights         [queries, d]
#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "brrr/brrr.h"
#include "brrr/report/claims.h"
#include "brrr/report/progress.h"

using namespace brrr;

namespace {

// ---- the formula ------------------------------------------------------------------------------------

Tensor weights_of(const Tensor& q, const Tensor& k) {
  return softmax(matmul(q, transpose(k)) / std::sqrt(static_cast<double>(q.dim(-1))));
}

bool formula_is_the_op(Random& random) {
  const Shape shape{2, 3, 5, 8};  // batch, heads, positions, size of a head
  RandomStream& data = random.stream("data");
  const Tensor q = normal(shape, data), k = normal(shape, data), v = normal(shape, data);
  // Causal: a position must not read what comes after it, so those scores become minus infinity.
  const Tensor scores = matmul(q, transpose(k)) / std::sqrt(8.0);
  const Tensor causal = matmul(softmax(scores + triu(full({5, 5}, -1e30), 1)), v);
  report::Claims claims("The formula beside the op, which never makes the matrix of weights");
  const auto compare = [&](const std::string& what, const Tensor& by_hand, const Tensor& by_op) {
    const double difference = max(abs(by_hand - by_op)).item<double>();
    claims.holds(what, fmt::format("largest difference {:.1e}", difference), difference < 1e-5);
  };
  compare("every position reads every other", matmul(weights_of(q, k), v), attention(q, k, v));
  compare("causal", causal, attention(q, k, v, {.causal = true}));
  fmt::print("{}\n", claims.text());
  return claims.all_hold();
}

// ---- a task that needs it: say the sequence backwards -----------------------------------------------

constexpr int64_t kVocab = 12, kLength = 12, kWidth = 32;

// Every output position must read one other position. Without attention a position knows only itself.
class Reverser : public Module {
 public:
  explicit Reverser(Random& random)
      : token_(kVocab, kWidth, random, Init::normal(1)),
        position_(kLength, kWidth, random, Init::normal(1)),
        query_(kWidth, kWidth, random, {.init = Init::normal(0.1)}),
        key_(kWidth, kWidth, random, {.init = Init::normal(0.1)}),
        value_(kWidth, kWidth, random, {.init = Init::normal(0.1)}),
        head_(kWidth, kVocab, random, {.init = Init::normal(0.1)}) {
    add_module("token", token_);
    add_module("position", position_);
    add_module("query", query_);
    add_module("key", key_);
    add_module("value", value_);
    add_module("head", head_);
  }
  Tensor weights(const Tensor& tokens) const {  // [batch, length, length]
    const Tensor x = embedded(tokens);
    return weights_of(query_(x), key_(x));
  }
  Tensor logits(const Tensor& tokens) const {
    return head_(matmul(weights(tokens), value_(embedded(tokens))));
  }

 private:
  Tensor embedded(const Tensor& tokens) const { return token_(tokens) + position_.weight; }
  Embedding token_, position_;
  Linear query_, key_, value_, head_;
};

Tensor reversed(const Tensor& tokens) {
  return index_select(tokens, 1, arange(kLength - 1, -1, -1, {.dtype = DType::i64}));
}

double train(const Reverser& model, int64_t steps, Random& random) {
  AdamW optimizer(model.trainable_parameters(), {.weight_decay = 0});
  auto step = compile([&](const Tensor& tokens) {
    const Tensor loss = cross_entropy(model.logits(tokens), reversed(tokens));
    optimizer.update(grad(loss, optimizer.parameters()), 3e-3);
    return loss;
  });
  double loss = 0;
  report::Progress progress(steps);
  for (int64_t n = 0; n < steps; ++n) {
    loss = step(randint({64, kLength}, random.stream("data"), 0, kVocab)).item<double>();
    if (progress.is_due(n + 1)) progress.update(n + 1, fmt::format("loss {:.4f}", loss));
  }
  return loss;
}

void draw_weights(const Tensor& weights) {  // [length, length]
  constexpr std::string_view kShades[] = {"·", "░", "▒", "▓", "█"};
  const std::vector<double> values = weights.to_vector<double>();
  fmt::print("who reads whom: rows are outputs, columns are what they read\n");
  for (int64_t row = 0; row < kLength; ++row) {
    fmt::print("  ");
    for (int64_t col = 0; col < kLength; ++col)
      fmt::print("{} ", kShades[std::lround(4 * values[static_cast<size_t>(row * kLength + col)])]);
    fmt::print("\n");
  }
}

}  // namespace

int main() {
  Random random(1);
  const bool same = formula_is_the_op(random);
  const Reverser model(random);
  fmt::print("a sequence of {} signs, said backwards; guessing costs log {} = {:.3f}\n", kLength,
             kVocab, std::log(kVocab));
  const double loss = train(model, 600, random);
  NoGrad no_tape;
  const Tensor test = randint({200, kLength}, random.stream("test"), 0, kVocab);
  const Tensor right = cast(equal(argmax(model.logits(test), -1), reversed(test)), DType::f32);
  draw_weights(mean(model.weights(test), {0}));
  fmt::print("loss {:.4f}; {:.2f} % of the signs right on new sequences\n", loss,
             100 * mean(right).item<double>());
  return same && mean(right).item<double>() > 0.99 ? 0 : 1;
}
