// Models that others made, through the modules here: the logits of a GPT-2 checkpoint by onnxruntime, and
// the text that llama2.c writes with a trained Llama. The readers are only as general as the two files.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "brrr/nn/models.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "support/llama2c.h"
#include "support/shared_data.h"

namespace brrr {
namespace {

using Json = nlohmann::json;

// Hugging Face keeps the projections of GPT-2 as [in, out].
std::vector<NamedTensor> read_gpt2(const std::string& bytes) {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const Json header = Json::parse(bytes.substr(8, header_bytes));
  std::vector<NamedTensor> tensors;
  for (const auto& [key, entry] : header.items()) {
    if (!key.starts_with("transformer.") || key.ends_with(".attn.bias")) continue;
    Shape shape;
    for (const Json& size : entry.at("shape")) shape.push_back(size.get<int64_t>());
    const size_t offset = 8 + header_bytes + entry.at("data_offsets")[0].get<size_t>();
    const Tensor x = floats_at(bytes, offset, shape);
    const bool transposed = shape.size() == 2 && key.find(".h.") != std::string::npos;
    tensors.push_back({key.substr(std::strlen("transformer.")), transposed ? transpose(x) : x});
  }
  return tensors;
}

TEST(RealFiles, Gpt2LogitsOfOnnxRuntime) {
  const auto weights = shared_data("ckpt/gpt2-tiny-random/model.safetensors"),
             input = shared_data("ref/gpt2_tiny_ort/input_ids.json"),
             expected = shared_data("ref/gpt2_tiny_ort/logits.f32");
  if (!weights || !input || !expected) GTEST_SKIP() << "no gpt2-tiny-random";
  Random random(1);
  Gpt2 model({.vocab = 1000, .context = 512, .layers = 5, .heads = 4, .width = 32}, random);
  model.load_state_dict(read_gpt2(read_file(*weights)));
  const Json ids = Json::parse(read_file(*input));
  const Tensor tokens = from_values(ids.at("input_ids").get<std::vector<int64_t>>(), {2, 24});
  const std::vector<float> logits = model.logits(tokens).to_vector<float>(),
                           theirs =
                               floats_at(read_file(*expected), 0, {2, 24, 1000}).to_vector<float>();
  double largest = 0;
  for (float value : theirs) largest = std::max(largest, std::fabs(double{value}));
  for (size_t i = 0; i < theirs.size(); ++i) ASSERT_NEAR(logits[i], theirs[i], 1e-5 * largest) << i;
}

TEST(RealFiles, LlamaWritesTheStoryOfLlama2c) {
  const std::optional<Stories260k> stories = load_stories260k();
  if (!stories) GTEST_SKIP() << "no stories260K";
  const auto& [model, pieces, expected] = *stories;

  NoGrad inference;
  std::vector<int64_t> tokens{1};  // the beginning of a text
  std::string text;
  for (int i = 0; i < 80; ++i) {
    const auto count = static_cast<int64_t>(tokens.size());
    const Tensor hidden = model->hidden(from_values(tokens, {1, count}));
    tokens.push_back(argmax(model->head(select(hidden, 1, count - 1)), -1).item<int64_t>());
    std::string piece = pieces[static_cast<size_t>(tokens.back())];
    if (i == 0 && piece.starts_with(" ")) piece.erase(0, 1);
    text += piece;
  }
  EXPECT_GT(text.size(), 100U);
  EXPECT_EQ(expected.substr(0, text.size()), text);
}

}  // namespace
}  // namespace brrr
