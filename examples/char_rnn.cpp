// A character at a time: a recurrent network and an LSTM learn to spell stories.
//   char_rnn            some seconds each
//   char_rnn --full     some minutes, and better stories
//
// Both read one character after another and keep what they need in a state of fixed size. The plain network
// overwrites its state at every step; the LSTM has gates that decide what stays, so gradients reach further.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "brrr/brrr.h"
#include "brrr/data/stories.h"
#include "brrr/report/plot.h"
#include "brrr/report/progress.h"

using namespace brrr;

namespace {

constexpr int64_t kVocab = 128, kBatch = 16,
                  kContext = 32;  // stories are ASCII: a character is its code

// Characters of many stories in a row, one number each.
Tensor story_characters(int64_t stories, StorySplit split) {
  std::string text;
  for (int64_t i = 0; i < stories; ++i) text += story(i, {.split = split}) + "\n";
  return from_values(std::vector<int64_t>(text.begin(), text.end()),
                     {static_cast<int64_t>(text.size())});
}

// kBatch stretches of the text from random places: [batch, context + 1], inputs and, one on, targets.
Tensor draw_rows(const Tensor& text, RandomStream& random) {
  const Tensor starts = randint({kBatch, 1}, random, 0, text.dim(0) - kContext);
  const Tensor places = starts + arange(kContext + 1);
  return reshape(index_select(text, 0, reshape(places, {-1})), {kBatch, kContext + 1});
}

Tensor loss_of(const LanguageModel& model, const Tensor& rows) {
  return model.loss(slice(rows, 1, {0, kContext}), slice(rows, 1, {1, kContext + 1}));
}

std::vector<double> train(const LanguageModel& model, const Tensor& text, int64_t steps,
                          Random& random) {
  AdamW optimizer(model.trainable_parameters());
  const Schedule schedule({.rate = 1e-2, .steps = steps, .warmup = 20});
  auto step = compile([&](const Tensor& rows, const Tensor& number) {
    const Tensor loss = loss_of(model, rows);
    std::vector<Tensor> grads = grad(loss, optimizer.parameters());
    clip_global_norm(grads, 1.0);  // what is multiplied by itself at every character can explode
    optimizer.update(grads, schedule.at(number));
    return loss;
  });
  std::vector<double> losses;
  report::Progress progress(steps);
  for (int64_t n = 0; n < steps; ++n) {
    losses.push_back(step(draw_rows(text, random.stream("data")), full({}, static_cast<double>(n)))
                         .item<double>());
    if (progress.is_due(n + 1)) progress.update(n + 1, fmt::format("loss {:.3f}", losses.back()));
  }
  return losses;
}

// Writes on from a prompt: each character is drawn from what the model expects after those before it.
std::string write_on(const RecurrentLm& model, const std::string& prompt, int64_t count,
                     Random& random) {
  NoGrad no_tape;
  std::string text = prompt;
  RecurrentState state;
  std::string next = prompt;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> codes(next.begin(), next.end());
    const auto result = model.advance(from_values(codes, {1, std::ssize(codes)}), state);
    state = result.state;
    const Tensor logits = model.head(select(result.output, 1, -1));  // [1, vocab]
    // Adding Gumbel noise and taking the largest draws from the softmax.
    const Tensor noise = -log(-log(uniform({1, kVocab}, random.stream("sample"), {1e-9, 1})));
    next = static_cast<char>(argmax(logits / 0.7 + noise, -1).item<int64_t>());
    text += next;
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const bool full_size = argc > 1 && std::string_view(argv[1]) == "--full";
  const int64_t steps = full_size ? 2000 : 300, width = full_size ? 192 : 96;
  const Tensor text = story_characters(2000, StorySplit::train);
  const Tensor unseen = story_characters(50, StorySplit::validation);
  double last[2] = {};
  for (Cell cell : {Cell::rnn, Cell::lstm}) {
    Random random(1);
    const RecurrentLm model(
        {.cell = cell, .vocab = kVocab, .context = kContext, .layers = 1, .width = width}, random);
    fmt::print("{}: {} parameters, {} steps of {} characters\n", cell_name(cell),
               with_commas(model.parameter_count()), steps, kBatch * kContext);
    const std::vector<double> losses = train(model, text, steps, random);
    double& loss = last[cell == Cell::lstm];
    for (int i = 0; i < 20; ++i) {
      NoGrad no_tape;
      loss += loss_of(model, draw_rows(unseen, random.stream("test"))).item<double>() / 20;
    }
    fmt::print(
        "{}on unseen stories {:.3f} nats a character, as unsure as between {:.1f} characters\n",
        report::line_plot(losses, {.height = 8, .title = "loss"}), loss, std::exp(loss));
    fmt::print("\n  {}\n\n", write_on(model, "Once upon a time", 200, random));
  }
  // Guessing costs log 128 = 4.85; letters by their frequency about 2.9.
  return last[0] < 2.9 && last[1] < 2.9 ? 0 : 1;
}
