// Draws of many rows at once are those of each row by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/random/sample_tokens.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 5, kVocab = 203;

Tensor logits_of(DType dtype) {
  return cast(normal({kRows, kVocab}, RandomKey{.seed = 3}, {.std = 2}), dtype);
}

std::vector<DrawPlace> places_of(uint64_t position) {
  std::vector<DrawPlace> places;
  for (uint32_t row = 0; row < kRows; ++row)
    places.push_back({.sample = 4'000'000'000U + row, .position = position << 40 | row});
  return places;
}

TEST(DrawTokens, AreThoseOfSampleToken) {
  const SamplingOptions free{.seed = UINT64_MAX}, cut{.temperature = 0.8,
                                                      .top_k = 20,
                                                      .top_p = 0.9,
                                                      .min_p = 0.02,
                                                      .repetition_penalty = 1.4,
                                                      .seed = 6};
  const std::vector<int32_t> seen{0, 7, 7, 100, 202};
  const Tensor flags = zeros({kRows, kVocab}, {.dtype = DType::boolean});
  for (int64_t row = 0; row < kRows; ++row) {
    for (int32_t id : seen) flags.data<bool>()[row * kVocab + id] = true;
  }
  std::vector<int64_t> all;
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Tensor logits = logits_of(dtype);
    for (const SamplingOptions& options : {free, cut, SamplingOptions{.temperature = 0}}) {
      for (uint64_t position : {0, 1, 900}) {
        const std::vector<DrawPlace> places = places_of(position);
        const DrawnTokens drawn =
            draw_tokens(logits, draw_settings(options), draw_keys(options, places), flags);
        for (int64_t row = 0; row < kRows; ++row) {
          const auto own = logits[row].to_vector<float>();
          const auto r = static_cast<size_t>(row);
          EXPECT_EQ(drawn.ids.to_vector<int64_t>()[r], sample_token(own, seen, options, places[r]))
              << row;
          EXPECT_EQ(drawn.status.to_vector<int64_t>()[r], kUsableLogits);
          all.push_back(drawn.ids.to_vector<int64_t>()[r]);
        }
      }
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_GT(std::unique(all.begin(), all.end()) - all.begin(), 20) << "draws must differ";
}

// A bad row says so and leaves the others alone.
TEST(DrawTokens, SayWhichLogitIsNoNumber) {
  const Tensor logits = logits_of(DType::f32);
  float* const numbers = logits.data<float>();
  numbers[kVocab - 1] = HUGE_VALF;
  numbers[kVocab + 9] = -std::nanf("");
  numbers[kVocab + 10] = HUGE_VALF;
  std::fill_n(numbers + 2 * kVocab, kVocab, -HUGE_VALF);
  const DrawnTokens drawn = draw_tokens(logits, draw_settings({}), draw_keys({}, places_of(1)));
  const auto status = drawn.status.to_vector<int64_t>();
  const auto message = [&](size_t row) { return error_of([&] { check_logits(status[row]); }); };
  EXPECT_THAT(message(0), HasSubstr("sampling: the logit of token 202 is inf; the model"));
  EXPECT_THAT(message(1), HasSubstr("sampling: the logit of token 9 is nan; the model"));
  EXPECT_THAT(message(2), HasSubstr("sampling: all logits are -inf"));
  for (size_t row = 0; row < 3; ++row) EXPECT_EQ(drawn.ids.to_vector<int64_t>()[row], 0);
  for (size_t row = 3; row < 5; ++row) EXPECT_EQ(status[row], kUsableLogits);
}

TEST(DrawTokens, RefuseOtherShapesAndTypes) {
  const Tensor logits = logits_of(DType::f32), settings = draw_settings({}),
               keys = draw_keys({}, places_of(1));
  const auto message = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d = {}) {
    return error_of([&] { draw_tokens(a, b, c, d); });
  };
  EXPECT_THAT(message(logits[0], settings, keys), HasSubstr("[rows, vocab]"));
  EXPECT_THAT(message(cast(logits, DType::i64), settings, keys), HasSubstr("i64"));
  EXPECT_THAT(message(logits, settings, draw_keys({}, {})), HasSubstr("keys are i64 [rows, 4]"));
  EXPECT_THAT(message(logits, keys, keys), HasSubstr("settings are 4 floats"));
  EXPECT_THAT(message(logits, settings, keys, keys), HasSubstr("what was seen is a bool"));
  EXPECT_THAT(message(zeros({kRows, 0}), settings, keys), HasSubstr("a vocabulary of 0"));
}

}  // namespace
}  // namespace brrr
