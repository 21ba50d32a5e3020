// Recurrent models as a family: fields, presets and sizes. transformers has no class for them.
#include "brrr/nn/families/recurrent_lm.h"

namespace brrr {
namespace {

const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> kPresets = {
      {"rnn-tiny", RecurrentLmConfig{.cell = Cell::rnn, .context = 64, .layers = 1, .width = 64}},
      {"gru-tiny", RecurrentLmConfig{.cell = Cell::gru, .context = 64, .layers = 1, .width = 64}},
      {"lstm-tiny", RecurrentLmConfig{.cell = Cell::lstm, .context = 64, .layers = 1, .width = 64}},
      {"lstm-small", RecurrentLmConfig{.cell = Cell::lstm, .layers = 2, .width = 512}}};
  return kPresets;
}

ModelFamily make_family() {
  using C = RecurrentLmConfig;
  static constexpr std::string_view kCells[] = {"rnn", "gru", "lstm"};
  ModelFamily family = define_family<RecurrentLmConfig, RecurrentLm>(
      "recurrent", {model_field("cell", &C::cell, kCells), model_field("vocab", &C::vocab),
                    model_field("context", &C::context), model_field("layers", &C::layers),
                    model_field("width", &C::width), model_field("tied", &C::tied),
                    model_field("dropout", &C::dropout)});
  family.presets = presets;
  return family;
}

}  // namespace

const ModelFamily& RecurrentLmConfig::family() {
  static const ModelFamily kFamily = make_family();
  return kFamily;
}

ModelShape RecurrentLmConfig::shape() const {
  const auto h = static_cast<double>(width);
  const double gates = cell == Cell::rnn ? 1 : cell == Cell::gru ? 3 : 4;
  return {.layers = layers,
          .width = width,
          .vocab = vocab,
          .context = context,
          .tied = tied,
          .mixer_matrices = gates * 2 * h * h,
          .mixer_elements = gates * h,
          .layer_vectors = gates * 2 * h};
}

}  // namespace brrr
