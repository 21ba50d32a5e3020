// How well a model predicts some tokens: mean loss, perplexity, bits per byte. Every token but the first of
// a range is predicted once, from what stands before it in its window.
//
//   Evaluator evaluator(*model, open_tokens("corpus", "validation"), {.batch = 8}, tokenizer.get());
//   Evaluation now = evaluator.run();        // with the parameters as they are; compiled at the first call
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "brrr/data/token_set.h"
#include "brrr/nn/language_model.h"
#include "brrr/runtime/compile.h"
#include "brrr/text/tokenizer.h"

namespace brrr::infer {

struct EvaluateOptions {
  int64_t batch = 8;        // windows at a time
  int64_t context = 0;      // tokens of a window; 0: what the model takes
  int64_t max_batches = 0;  // > 0: at most so many, of windows spread evenly over the tokens
  bool documents = true;    // a token sees those of its own document only
  // Windows begin where a document does, as far as whole ones fit and the file says where they are, so
  // that no text lacks its beginning. Else they are cut evenly.
  bool whole_documents = true;
};

struct Evaluation {
  double loss = 0;  // mean of -ln p over the predicted tokens
  double perplexity = 0;
  std::optional<double> bits_per_byte;  // where the tokenizer is known
  int64_t tokens = 0;                   // predicted
  int64_t bytes = 0;                    // of text that they stand for; special tokens have none
};

class Evaluator {
 public:
  // `tokenizer` (may be null) says how many bytes tokens stand for. The model must outlive the evaluator.
  Evaluator(const LanguageModel& model, TokenSet tokens, const EvaluateOptions& options = {},
            const text::Tokenizer* tokenizer = nullptr);
  Evaluator(const Evaluator&) = delete;  // its program knows where it lives
  Evaluator& operator=(const Evaluator&) = delete;

  Evaluation run();
  int64_t windows() const { return static_cast<int64_t>(windows_.size()); }

 private:
  struct Window {
    const TokenRange* range;
    int64_t first, count;  // tokens of the file: inputs, and as many targets one place on
  };
  struct Rows {
    Tensor tokens, targets, documents;
    int64_t predicted = 0, bytes = 0;
  };
  void cut_windows();
  void keep_evenly(int64_t count);
  Rows read(size_t first) const;
  void read_window(const Window& window, std::span<int64_t> tokens, std::span<int64_t> targets,
                   std::span<int64_t> documents) const;

  const LanguageModel& model_;
  TokenSet tokens_;
  EvaluateOptions options_;
  std::vector<int64_t> bytes_of_;  // by id; empty where the tokenizer is not known
  std::vector<Window> windows_;
  runtime::CompiledFunction program_;
};

}  // namespace brrr::infer
