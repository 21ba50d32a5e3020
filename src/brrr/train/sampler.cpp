#include "brrr/train/sampler.h"

#include "brrr/base/error.h"

namespace brrr::training {

Sampler::Sampler(const LanguageModel& model, std::shared_ptr<const text::Tokenizer> tokenizer,
                 const SamplerOptions& options)
    : tokenizer_(std::move(tokenizer)), options_(options), generator_(model) {
  const auto edge = tokenizer_ ? tokenizer_->end_of_text() : std::optional<int32_t>();
  if (!edge) fail("samples need a tokenizer with a token that ends a text");
  edge_ = *edge;
}

std::string Sampler::write(uint32_t number, int64_t tokens) {
  const std::vector<int32_t> ids =
      generator_.generate(std::span(&edge_, 1),
                          {.tokens = tokens,
                           .sampling = {.temperature = options_.temperature, .seed = options_.seed},
                           .stop = edge_,
                           .context_end = infer::ContextEnd::stop,
                           .first_sample = number});
  return tokenizer_->decode(ids);
}

}  // namespace brrr::training
