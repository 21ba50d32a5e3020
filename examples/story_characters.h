// Made-up stories as rows of characters: what the examples of small GPTs learn from.
#pragma once

#include <string>
#include <vector>

#include "brrr/brrr.h"
#include "brrr/data/stories.h"
#include "brrr/device/default_device.h"

namespace examples {

inline constexpr int64_t kVocab = 128;  // stories are ASCII: a token is a character

struct Sizes {
  int64_t layers, heads, width, context, batch, steps;
};

// On the default device, where rows are drawn from it.
inline brrr::Tensor story_characters(int64_t stories, brrr::StorySplit split) {
  std::string text;
  for (int64_t i = 0; i < stories; ++i) text += brrr::story(i, {.split = split}) + "\n";
  const brrr::Tensor characters = brrr::from_values(std::vector<int64_t>(text.begin(), text.end()),
                                                    {static_cast<int64_t>(text.size())});
  return brrr::to(characters, brrr::default_device());
}

// Stretches of the text from random places, [batch, context + 1].
inline brrr::Tensor draw_rows(const brrr::Tensor& text, const Sizes& sizes,
                              brrr::RandomStream& random) {
  using namespace brrr;
  const Tensor starts = randint({sizes.batch, 1}, random, 0, text.dim(0) - sizes.context);
  const Tensor places = reshape(starts + arange(sizes.context + 1), {-1});
  return reshape(index_select(text, 0, places), {sizes.batch, sizes.context + 1});
}

// Every position predicts the next character, from itself and those before it.
inline brrr::Tensor loss_of(const brrr::Gpt2& model, const brrr::Tensor& rows) {
  const int64_t last = rows.dim(1) - 1;
  return model.loss(brrr::slice(rows, 1, {0, last}), brrr::slice(rows, 1, {1, last + 1}));
}

}  // namespace examples
