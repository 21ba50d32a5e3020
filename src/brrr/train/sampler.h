// Texts by a model that is being trained: the same parameters, read where they are.
#pragma once

#include <memory>
#include <string>

#include "brrr/infer/generator.h"
#include "brrr/text/tokenizer.h"

namespace brrr::training {

struct SamplerOptions {
  double temperature = 0.8;
  uint64_t seed = 0;
};

class Sampler {
 public:
  // The model must outlive it. The tokenizer must have a token that ends a text: a sample begins with it
  // and ends before the next.
  Sampler(const LanguageModel& model, std::shared_ptr<const text::Tokenizer> tokenizer,
          const SamplerOptions& options);

  // At most so many tokens; `number` tells the texts of one seed apart.
  std::string write(uint32_t number, int64_t tokens);

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  SamplerOptions options_;
  int32_t edge_ = 0;  // stands between texts
  infer::Generator generator_;
};

}  // namespace brrr::training
