// Writes text with a model: feeds prompts, draws tokens, feeds those.
//
//   Generator generator(*model);
//   generator.generate(tokenizer.encode("Once upon a time"), {.tokens = 200, .sampling = {.temperature = 0.8}},
//                      [&](int32_t token) { std::cout << tokenizer.bytes_of(token); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "brrr/infer/decoder.h"
#include "brrr/kernels/scalar/sampling.h"

namespace brrr::infer {

// Where tokens are drawn. The same ones, but for rounding (ops/random/sample_tokens.h).
enum class DrawOn : uint8_t {
  automatic,  // on a GPU where the model lives on one, else on the host
  host,       // from logits that come to the host for every token
  device,     // where the logits are, one token ahead of what the host has seen
};

struct GeneratorOptions {
  int64_t prefill_block = 64;
  DrawOn draw_on = DrawOn::automatic;
};

// What happens where a text is as long as the context.
enum class ContextEnd : uint8_t {
  slide,  // it goes on from its last half, read anew; what lies before that is forgotten
  stop,
};

struct GenerateOptions {
  int64_t tokens = 256;  // at most so many new ones
  SamplingOptions sampling = {};
  std::optional<int32_t> stop = {};  // the token that ends a text; it is no part of it
  ContextEnd context_end = ContextEnd::slide;
  uint32_t first_sample = 0;  // row r of a batch draws as text number first_sample + r
};

struct Generation {
  std::vector<int32_t> ids;  // the new ones
  bool stopped = false;      // by the stop token
};

class Generator {
 public:
  // The model must outlive it. Its parameters may change between calls.
  explicit Generator(const LanguageModel& model, const GeneratorOptions& options = {});
  ~Generator();

  // Calls take for each new token. A prompt has at least one token; where it is longer than the context,
  // its last part is read.
  using Take = std::function<void(int32_t token)>;
  std::vector<int32_t> generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                const Take& take = {});

  // Several texts side by side. The text of a row is that of the row by itself, up to rounding.
  using TakeInRow = std::function<void(int64_t row, int32_t token)>;
  std::vector<Generation> generate_all(const std::vector<std::vector<int32_t>>& prompts,
                                       const GenerateOptions& options, const TakeInRow& take = {});

  // The decoder for so many rows, made at the first call and kept.
  Decoder& decoder(int64_t batch);

 private:
  const LanguageModel& model_;
  GeneratorOptions options_;
  std::map<int64_t, std::unique_ptr<Decoder>> decoders_;  // by batch
};

}  // namespace brrr::infer
