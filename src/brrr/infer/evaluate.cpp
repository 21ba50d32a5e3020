#include "brrr/infer/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "brrr/data/batches.h"
#include "brrr/ops/create/creation.h"

namespace brrr::infer {
namespace {

// Bytes of text by id. Special tokens stand for no text.
std::vector<int64_t> byte_counts(const text::Tokenizer* tokenizer) {
  std::vector<int64_t> counts;
  if (!tokenizer) return counts;
  for (const std::string& bytes : tokenizer->definition().tokens)
    counts.push_back(static_cast<int64_t>(bytes.size()));
  counts.resize(static_cast<size_t>(tokenizer->vocab_size()), 0);
  for (const text::SpecialToken& special : tokenizer->definition().specials)
    counts[static_cast<size_t>(special.id)] = 0;
  return counts;
}

}  // namespace

Evaluator::Evaluator(const LanguageModel& model, TokenSet tokens, const EvaluateOptions& options,
                     const text::Tokenizer* tokenizer)
    : model_(model),
      tokens_(std::move(tokens)),
      options_(options),
      bytes_of_(byte_counts(tokenizer)),
      program_(
          [this](std::span<const Tensor> inputs) -> Tensors {
            NoGrad looking_only;
            ForwardInputs how;
            if (options_.documents) how.documents = inputs[2];
            return {model_.losses(inputs[0], inputs[1], how, {.ignore_index = kIgnoredTarget})
                        .cross_entropy};
          },
          {}) {
  check(options_.batch > 0, "evaluate: a batch of ", options_.batch, "; use at least 1");
  if (options_.context == 0) options_.context = model.context();
  check(options_.context > 0 && options_.context <= model.context(), "evaluate: a context of ",
        options_.context, " tokens; the model takes 1 to ", model.context());
  cut_windows();
  check(!windows_.empty(), "evaluate: ", tokens_.name, " has ", tokens_.token_count(),
        " tokens; at least two are needed, one to see and one to predict");
  if (options_.max_batches > 0) keep_evenly(options_.max_batches * options_.batch);
  options_.batch = std::min(options_.batch, windows());
}

void Evaluator::cut_windows() {
  for (const TokenRange& range : tokens_.ranges) {
    const bool whole = options_.whole_documents && range.file->document_count().has_value();
    const int64_t last = range.first + range.count - 1;  // a target only
    for (int64_t at = range.first; at < last;) {
      int64_t end = std::min(at + options_.context, last);
      const int64_t document = whole && end < last ? range.file->document_of(end) : at;
      if (document > at) end = document;  // one that would not end in this window
      windows_.push_back({&range, at, end - at});
      at = end;
    }
  }
}

void Evaluator::keep_evenly(int64_t count) {
  if (count >= windows()) return;
  std::vector<Window> kept;
  for (int64_t i = 0; i < count; ++i)
    kept.push_back(windows_[static_cast<size_t>(i * windows() / count)]);
  windows_ = std::move(kept);
}

// What a window does not fill up to the context is ignored.
void Evaluator::read_window(const Window& window, std::span<int64_t> tokens,
                            std::span<int64_t> targets, std::span<int64_t> documents) const {
  std::vector<int64_t> both(static_cast<size_t>(window.count) + 1);
  window.range->file->read(window.first, both);
  for (int64_t token : both)
    check(token >= 0 && token < model_.vocab(), "evaluate: ", window.range->file->name(),
          " has token ", token, ", and the model knows ", model_.vocab(),
          "; it was prepared with another tokenizer");
  const auto count = static_cast<size_t>(window.count);
  std::copy_n(both.begin(), count, tokens.begin());
  std::copy_n(both.begin() + 1, count, targets.begin());
  window.range->file->number_documents(window.first, std::span(both).first(count),
                                       documents.first(count));
}

Evaluator::Rows Evaluator::read(size_t first) const {
  const auto context = static_cast<size_t>(options_.context),
             batch = static_cast<size_t>(options_.batch);
  std::vector<int64_t> tokens(batch * context, 0), targets(batch * context, kIgnoredTarget),
      documents(batch * context, 0);
  for (size_t row = 0; row < batch && first + row < windows_.size(); ++row) {
    const auto part = [&](std::vector<int64_t>& all) {
      return std::span(all).subspan(row * context, context);
    };
    read_window(windows_[first + row], part(tokens), part(targets), part(documents));
  }
  Rows rows;
  for (int64_t target : targets) {
    if (target == kIgnoredTarget) continue;
    ++rows.predicted;
    if (static_cast<size_t>(target) < bytes_of_.size())
      rows.bytes += bytes_of_[static_cast<size_t>(target)];
  }
  const Shape shape{options_.batch, options_.context};
  rows.tokens = from_values(tokens, shape);
  rows.targets = from_values(targets, shape);
  rows.documents = from_values(documents, shape);
  return rows;
}

Evaluation Evaluator::run() {
  Evaluation result;
  double nats = 0;
  for (size_t first = 0; first < windows_.size(); first += static_cast<size_t>(options_.batch)) {
    const Rows rows = read(first);
    const Tensor inputs[] = {rows.tokens, rows.targets, rows.documents};
    nats += program_.run(inputs)[0].item<double>() * static_cast<double>(rows.predicted);
    result.tokens += rows.predicted;
    result.bytes += rows.bytes;
  }
  result.loss = nats / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  if (result.bytes > 0)
    result.bits_per_byte = nats / std::numbers::ln2 / static_cast<double>(result.bytes);
  return result;
}

}  // namespace brrr::infer
