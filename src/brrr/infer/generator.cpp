#include "brrr/infer/generator.h"

#include <algorithm>

namespace brrr {
namespace {

// One text in the making.
struct Text {
  std::vector<int32_t> tokens;   // prompt and what was drawn
  std::vector<int32_t> pending;  // what the decoder has not seen yet
  bool finished = false;
};

std::vector<int32_t> last_tokens(const std::vector<int32_t>& tokens, int64_t count) {
  const auto skipped = std::max<int64_t>(0, static_cast<int64_t>(tokens.size()) - count);
  return {tokens.begin() + skipped, tokens.end()};
}

std::vector<Text> texts_of(const std::vector<std::vector<int32_t>>& prompts, int64_t context) {
  std::vector<Text> texts;
  for (const std::vector<int32_t>& prompt : prompts) {
    check(!prompt.empty(),
          "generate: an empty prompt has no logits to draw from; begin with the "
          "end-of-text token or with a word");
    // Room for one token at least, so that what is drawn can be fed.
    texts.push_back(
        {.tokens = prompt, .pending = last_tokens(prompt, std::max<int64_t>(1, context - 1))});
  }
  return texts;
}

bool all_finished(const std::vector<Text>& texts) {
  return std::all_of(texts.begin(), texts.end(), [](const Text& text) { return text.finished; });
}

// Where a row is full: rows share one decoder, so all are read anew from their last half context.
void slide(Decoder& decoder, std::vector<Text>& texts) {
  decoder.restart();
  for (Text& text : texts) {
    if (!text.finished)
      text.pending = last_tokens(text.tokens, std::max<int64_t>(1, decoder.capacity() / 2));
  }
}

bool is_full(const Decoder& decoder, const std::vector<Text>& texts) {
  for (size_t row = 0; row < texts.size(); ++row) {
    if (!texts[row].finished && decoder.length(static_cast<int64_t>(row)) >= decoder.capacity())
      return true;
  }
  return false;
}

Decoder::Rows take_pending(std::vector<Text>& texts) {
  Decoder::Rows rows;
  for (Text& text : texts) rows.push_back(std::exchange(text.pending, {}));
  return rows;
}

// Draws the next token of a text; false where that is the one that ends it.
bool draw(Text& text, std::span<const float> logits, const GenerateOptions& options,
          uint32_t sample) {
  const int32_t token = sample_token(logits, text.tokens, options.sampling,
                                     {.sample = sample, .position = text.tokens.size()});
  if (token == options.stop) return false;
  text.tokens.push_back(token);
  text.pending = {token};
  return true;
}

}  // namespace

Generator::Generator(const LanguageModel& model, const GeneratorOptions& options)
    : model_(model), options_(options) {}
Generator::~Generator() = default;

Decoder& Generator::decoder(int64_t batch) {
  std::unique_ptr<Decoder>& decoder = decoders_[batch];
  if (!decoder) {
    decoder = std::make_unique<Decoder>(
        model_, DecoderOptions{.batch = batch, .block = options_.prefill_block});
  }
  return *decoder;
}

std::vector<Generation> Generator::generate_all(const std::vector<std::vector<int32_t>>& prompts,
                                                const GenerateOptions& options,
                                                const TakeInRow& take) {
  check_sampling(options.sampling);
  check(options.tokens >= 0, "generate: ", options.tokens, " tokens; use 0 or more");
  std::vector<Text> texts = texts_of(prompts, model_.context());
  std::vector<Generation> results(texts.size());
  if (texts.empty() || options.tokens == 0) return results;
  Decoder& rows = decoder(static_cast<int64_t>(texts.size()));
  rows.restart();
  const auto vocab = static_cast<size_t>(model_.vocab());
  for (int64_t drawn = 0; drawn < options.tokens && !all_finished(texts); ++drawn) {
    if (is_full(rows, texts)) {
      if (options.context_end == ContextEnd::stop) break;
      slide(rows, texts);
    }
    const Tensor logits = rows.feed(take_pending(texts));
    for (size_t row = 0; row < texts.size(); ++row) {
      Text& text = texts[row];
      if (text.finished) continue;
      const std::span<const float> own(logits.data<float>() + row * vocab, vocab);
      if (draw(text, own, options, options.first_sample + static_cast<uint32_t>(row))) {
        results[row].ids.push_back(text.tokens.back());
        if (take) take(static_cast<int64_t>(row), text.tokens.back());
      } else {
        text.finished = results[row].stopped = true;
      }
    }
  }
  return results;
}

std::vector<int32_t> Generator::generate(std::span<const int32_t> prompt,
                                         const GenerateOptions& options, const Take& take) {
  TakeInRow take_row;
  if (take) take_row = [&](int64_t, int32_t token) { take(token); };
  return generate_all({{prompt.begin(), prompt.end()}}, options, take_row)[0].ids;
}

}  // namespace brrr
