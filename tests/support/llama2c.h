// The files of llama2.c: weights of a Llama, and the pieces of its tokenizer. Only as general as the files
// that tests use.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "brrr/nn/models.h"
#include "brrr/ops/view/views.h"
#include "support/shared_data.h"

namespace brrr {

inline Tensor floats_at(const std::string& bytes, size_t offset, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(numel(shape)));
  if (offset + values.size() * sizeof(float) > bytes.size()) throw Error("the file is too short");
  std::memcpy(values.data(), bytes.data() + offset, values.size() * sizeof(float));
  return from_values(values, shape);
}

// Rows of q and k go from pairs (2i, 2i + 1) of llama2.c to pairs (i, i + d/2).
inline Tensor pairs_to_halves(const Tensor& weight, int64_t heads) {
  const int64_t width = weight.dim(1), head_dim = weight.dim(0) / heads;
  const Tensor pairs = view(weight, {heads, head_dim / 2, 2, width});
  return reshape(transpose(pairs, 1, 2), {weight.dim(0), width});
}

inline std::vector<NamedTensor> read_llama2c(const std::string& bytes, const LlamaConfig& c) {
  size_t offset = 7 * sizeof(int32_t);
  std::vector<NamedTensor> tensors;
  const auto take = [&](const Shape& shape) {
    const Tensor x = floats_at(bytes, offset, shape);
    offset += static_cast<size_t>(x.numel()) * sizeof(float);
    return x;
  };
  const auto take_layers = [&](const std::string& name, const Shape& shape, int64_t turned = 0) {
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      const Tensor x = take(shape);
      tensors.push_back({join_text("model.layers.", layer, ".", name, ".weight"),
                         turned > 0 ? pairs_to_halves(x, turned) : x});
    }
  };
  const int64_t h = c.width, kv = h / c.heads * c.kv_heads;
  tensors.push_back({"model.embed_tokens.weight", take({c.vocab, h})});
  take_layers("input_layernorm", {h});
  take_layers("self_attn.q_proj", {h, h}, c.heads);
  take_layers("self_attn.k_proj", {kv, h}, c.kv_heads);
  take_layers("self_attn.v_proj", {kv, h});
  take_layers("self_attn.o_proj", {h, h});
  take_layers("post_attention_layernorm", {h});
  take_layers("mlp.gate_proj", {c.hidden, h});
  take_layers("mlp.down_proj", {h, c.hidden});
  take_layers("mlp.up_proj", {c.hidden, h});
  tensors.push_back({"model.norm.weight", take({h})});
  return tensors;
}

inline std::vector<std::string> read_pieces(const std::string& bytes, int64_t vocab) {
  std::vector<std::string> pieces;
  size_t offset = sizeof(int32_t);  // behind the length of the longest
  for (int64_t i = 0; i < vocab; ++i) {
    int32_t length = 0;
    std::memcpy(&length, bytes.data() + offset + sizeof(float), sizeof(length));
    std::string piece = bytes.substr(offset + 8, static_cast<size_t>(length));
    offset += 8 + static_cast<size_t>(length);
    if (piece.size() == 6 && piece.starts_with("<0x"))
      piece = std::string(1, static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// llama2.c's smallest model, and the text that llama2.c writes with it at temperature 0.
struct Stories260k {
  std::unique_ptr<Llama> model;
  std::vector<std::string> pieces;
  std::string expected;
};
inline std::optional<Stories260k> load_stories260k() {
  const auto weights = shared_data("ckpt/stories260K.bin"),
             tokenizer = shared_data("ckpt/tok512.bin"),
             expected = shared_data("ref/llama2c_stories260K_t0_n200_expected.txt");
  if (!weights || !tokenizer || !expected) return std::nullopt;
  Random random(1);
  const LlamaConfig config = llama_preset("stories-260k");
  Stories260k stories{.model = std::make_unique<Llama>(config, random),
                      .pieces = read_pieces(read_file(*tokenizer), config.vocab),
                      .expected = read_file(*expected)};
  stories.model->load_state_dict(read_llama2c(read_file(*weights), config));
  return stories;
}

}  // namespace brrr
