#include "brrr/infer/generator.h"

#include <algorithm>

namespace brrr::infer {
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

// The texts of one call, and who takes them.
struct Writing {
  const GenerateOptions& options;
  const Generator::TakeInRow& take;
  std::vector<Text> texts;
  std::vector<Generation> results;

  uint32_t sample(size_t row) const { return options.first_sample + static_cast<uint32_t>(row); }

  // The next token of a text, which the stop token ends.
  void accept(size_t row, int32_t token) {
    Text& text = texts[row];
    if (token == options.stop) {
      text.finished = results[row].stopped = true;
      return;
    }
    text.tokens.push_back(token);
    text.pending = {token};
    results[row].ids.push_back(token);
    if (take) take(static_cast<int64_t>(row), token);
  }
  // Where the token is drawn that comes `ahead` behind the next.
  std::vector<DrawPlace> places(size_t ahead) const {
    std::vector<DrawPlace> all;
    for (size_t row = 0; row < texts.size(); ++row)
      all.push_back({.sample = sample(row), .position = texts[row].tokens.size() + ahead});
    return all;
  }
  std::vector<bool> unfinished() const {
    std::vector<bool> rows;
    for (const Text& text : texts) rows.push_back(!text.finished);
    return rows;
  }
  // False where a full text is to end.
  bool make_room(Decoder& decoder) {
    if (!is_full(decoder, texts)) return true;
    if (options.context_end == ContextEnd::stop) return false;
    slide(decoder, texts);
    return true;
  }
};

void write_on_host(Decoder& decoder, Writing& writing, size_t vocab) {
  const GenerateOptions& options = writing.options;
  for (int64_t drawn = 0; drawn < options.tokens && !all_finished(writing.texts); ++drawn) {
    if (!writing.make_room(decoder)) return;
    const Tensor logits = decoder.feed(take_pending(writing.texts));
    for (size_t row = 0; row < writing.texts.size(); ++row) {
      const Text& text = writing.texts[row];
      if (text.finished) continue;
      const std::span<const float> own(logits.data<float>() + row * vocab, vocab);
      writing.accept(row, sample_token(own, text.tokens, options.sampling,
                                       {writing.sample(row), text.tokens.size()}));
    }
  }
}

// The decoder draws and feeds itself. The next token is under way before the host takes this one; a row that
// ends with this one then gets a token too many, which nobody reads.
void write_on_device(Decoder& decoder, Writing& writing) {
  const GenerateOptions& options = writing.options;
  std::vector<Text>& texts = writing.texts;
  Decoder::Rows seen;
  for (const Text& text : texts) seen.push_back(text.tokens);
  decoder.begin_draws(options.sampling, seen);
  std::optional<runtime::PendingResults> next;
  for (int64_t drawn = 0; drawn < options.tokens && !all_finished(texts); ++drawn) {
    if (!next) {
      if (!writing.make_room(decoder)) return;
      next = decoder.draw(take_pending(texts), writing.places(0));
    }
    runtime::PendingResults now = *std::exchange(next, std::nullopt);
    const bool is_next_fed =
        decoder.uses_cache() && drawn + 1 < options.tokens && !is_full(decoder, texts);
    if (is_next_fed) next = decoder.draw_next(writing.unfinished(), writing.places(1));
    const Tensors results = now.take();
    for (size_t row = 0; row < texts.size(); ++row) {
      if (texts[row].finished) continue;
      check_logits(results[1].data<int64_t>()[row]);
      writing.accept(row, static_cast<int32_t>(results[0].data<int64_t>()[row]));
      if (is_next_fed) texts[row].pending.clear();
    }
  }
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
  Writing writing{.options = options,
                  .take = take,
                  .texts = texts_of(prompts, model_.context()),
                  .results = std::vector<Generation>(prompts.size())};
  if (prompts.empty() || options.tokens == 0) return writing.results;
  Decoder& rows = decoder(static_cast<int64_t>(prompts.size()));
  rows.restart();
  const bool is_on_gpu = rows.device().is_accelerator();
  if (options_.draw_on == DrawOn::device || (options_.draw_on == DrawOn::automatic && is_on_gpu)) {
    write_on_device(rows, writing);
  } else {
    write_on_host(rows, writing, static_cast<size_t>(model_.vocab()));
  }
  return writing.results;
}

std::vector<int32_t> Generator::generate(std::span<const int32_t> prompt,
                                         const GenerateOptions& options, const Take& take) {
  TakeInRow take_row;
  if (take) take_row = [&](int64_t, int32_t token) { take(token); };
  return generate_all({{prompt.begin(), prompt.end()}}, options, take_row)[0].ids;
}

}  // namespace brrr::infer
