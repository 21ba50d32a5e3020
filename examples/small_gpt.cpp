// A small GPT, trained on made-up stories and asked for one. `brrr train` does the same with everything a
// real run needs (tokenizer, evaluation, checkpoints, report); here is the core of it on one page.
//   small_gpt            some seconds: words appear
//   small_gpt --full     some minutes: stories appear
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "brrr/brrr.h"
#include "brrr/report/plot.h"
#include "brrr/report/progress.h"
#include "story_characters.h"

using namespace brrr;
using namespace examples;

namespace {

std::vector<double> train(const Gpt2& model, const Tensor& text, const Sizes& sizes,
                          Random& random) {
  AdamW optimizer(model.trainable_parameters(), {.beta2 = 0.99, .weight_decay = 0.1});
  const Schedule schedule({.rate = 2e-3, .steps = sizes.steps, .warmup = sizes.steps / 20});
  auto step = compile([&](const Tensor& rows, const Tensor& number) {
    const Tensor loss = loss_of(model, rows);
    std::vector<Tensor> grads = grad(loss, optimizer.parameters());
    clip_global_norm(grads, 1.0);
    optimizer.update(grads, schedule.at(number));
    return loss;
  });
  std::vector<double> losses;
  report::Progress progress(sizes.steps);
  for (int64_t n = 0; n < sizes.steps; ++n) {
    const Tensor rows = draw_rows(text, sizes, random.stream("data"));
    losses.push_back(step(rows, full({}, static_cast<double>(n))).item<double>());
    if (progress.is_due(n + 1)) progress.update(n + 1, fmt::format("loss {:.3f}", losses.back()));
  }
  return losses;
}

// The simplest way to write: all of the last `context` characters go through the model for every new one.
// (brrr generate keeps keys and values of the past instead.)
std::string write_on(const Gpt2& model, std::string text, int64_t count, Random& random) {
  NoGrad no_tape;
  for (int64_t i = 0; i < count && text.back() != '\n'; ++i) {
    const std::string seen = text.substr(
        text.size() - std::min<size_t>(text.size(), static_cast<size_t>(model.context())));
    const std::vector<int64_t> codes(seen.begin(), seen.end());
    const Tensor hidden = model.hidden(from_values(codes, {1, std::ssize(codes)}));
    const Tensor logits = model.head(select(hidden, 1, -1));
    const Tensor noise = -log(-log(uniform({1, kVocab}, random.stream("sample"), {1e-9, 1})));
    text += static_cast<char>(argmax(logits / 0.6 + noise, -1).item<int64_t>());
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const bool full_size = argc > 1 && std::string_view(argv[1]) == "--full";
  const Sizes sizes =
      full_size
          ? Sizes{.layers = 4, .heads = 4, .width = 128, .context = 128, .batch = 12, .steps = 1200}
          : Sizes{.layers = 2, .heads = 2, .width = 64, .context = 64, .batch = 8, .steps = 600};
  const Tensor text = story_characters(5000, StorySplit::train),
               unseen = story_characters(100, StorySplit::validation);
  Random random(1);
  const Gpt2 model({.vocab = kVocab,
                    .context = sizes.context,
                    .layers = sizes.layers,
                    .heads = sizes.heads,
                    .width = sizes.width},
                   random);
  fmt::print("{} parameters, {} steps of {} characters\n", with_commas(model.parameter_count()),
             sizes.steps, sizes.batch * sizes.context);
  const std::vector<double> losses = train(model, text, sizes, random);
  NoGrad no_tape;
  double loss = 0;
  for (int i = 0; i < 20; ++i)
    loss += loss_of(model, draw_rows(unseen, sizes, random.stream("test"))).item<double>() / 20;
  fmt::print("{}on unseen stories {:.3f} nats a character\n\n",
             report::line_plot(losses, {.height = 10, .title = "loss"}), loss);
  const std::string written = write_on(model, "Once upon a time", full_size ? 600 : 150, random);
  const StoryVerdict verdict = parse_story(written);
  fmt::print(
      "  {}\n\n{}\n", written,
      verdict ? "The grammar that makes the stories could have made this one."
              : fmt::format("A story up to character {}: {}.", verdict.position, verdict.reason));
  return loss < 2.9 ? 0 : 1;  // letters by their frequency cost 2.9
}
