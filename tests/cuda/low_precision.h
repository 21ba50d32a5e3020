// What tests of training in low precision on a GPU have in common: a small GPT, what its states hold, and how the loss
// scale and the scales of 8-bit operands must move.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "brrr/nn/families/gpt2.h"
#include "brrr/ops/create/copy.h"
#include "brrr/runtime/executable.h"

namespace brrr {

// Heads of 32 go to tensor cores, and all sizes are multiples of 16, as 8-bit products ask. The vocabulary of 64 keeps
// the head among them.
inline const Gpt2Config kSmallGpt{.vocab = 64, .context = 32, .layers = 2, .heads = 2, .width = 64};

inline std::vector<float> state_of(runtime::Executable& program, std::string_view name) {
  for (const graph::StateSlot& slot : program.graph().states) {
    if (slot.name == name) return to(slot.tensor, Device::cpu()).to_vector<float>();
  }
  ADD_FAILURE() << "there is no state named " << name;
  return {};
}

// ---- the loss scale ----

// 2^40 times any gradient is beyond f16; three good steps double the scale.
inline compiler::PrecisionOptions overflowing_f16() {
  return {.policy = compiler::Precision::f16_mixed,
          .loss_scale = {.initial = 0x1p40, .growth_interval = 3, .largest = 0x1p40}};
}

// A training under overflowing_f16() until a step counts: those before it halve the scale and change nothing else.
// run_step() makes one step and returns its loss. Returns the scale of the step that counts, the first good one.
template <typename Training, typename RunStep>
double expect_overflows_halve_the_scale(Training& training, const RunStep& run_step) {
  const std::vector<float> before = training.contents();
  double scale = 0x1p40;
  int refused = 0;
  for (; refused < 40; ++refused) {
    EXPECT_TRUE(std::isfinite(run_step())) << "the forward part is not scaled";
    const double now = training.state("loss_scale")[0];
    if (now >= scale) break;
    EXPECT_EQ(now, scale / 2);
    EXPECT_EQ(training.contents(), before) << "step " << refused;
    scale = now;
  }
  EXPECT_GT(refused, 3) << "launches, capture and replays see an overflow";
  EXPECT_LT(refused, 40);
  EXPECT_NE(training.contents(), before) << "the first step without an overflow counts";
  EXPECT_EQ(training.state("loss_scale.good_steps")[0], 1);
  return scale;
}

// ---- 8-bit operands ----

struct EightBitScales {
  std::string format;
  double largest;  // number of the format
  std::vector<float>
      amax;  // largest magnitudes of an operand, the newest first, operand by operand
  std::vector<float> scales;  // one an operand
};

inline std::vector<EightBitScales> eight_bit_scales(runtime::Executable& program) {
  std::vector<EightBitScales> found{{"e4m3", 448, {}, {}}, {"e5m2", 57344, {}, {}}};
  for (EightBitScales& each : found) {
    const std::string name = join_text("fp8.", each.format);
    each.amax = state_of(program, name + ".amax");
    each.scales = state_of(program, name + ".scale");
  }
  return found;
}

// After so many steps: a magnitude for each of them and no more, near the expected one, and scales that bring the
// largest of an operand to the largest number of its format.
inline void expect_scales(const std::vector<EightBitScales>& found,
                          const std::vector<EightBitScales>& expected, size_t steps) {
  constexpr size_t kHistory = 16;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t f = 0; f < found.size(); ++f) {
    const auto& [format, largest_number, amax, scales] = found[f];
    ASSERT_FALSE(scales.empty()) << format;
    ASSERT_EQ(amax.size(), scales.size() * kHistory) << format;
    ASSERT_EQ(amax.size(), expected[f].amax.size()) << format;
    for (size_t i = 0; i < scales.size(); ++i) {
      float largest = 0;
      for (size_t s = 0; s < kHistory; ++s) {
        const float magnitude = amax[i * kHistory + s], wanted = expected[f].amax[i * kHistory + s];
        EXPECT_EQ(magnitude > 0, s < steps)
            << format << " operand " << i << ", " << s << " steps ago";
        EXPECT_NEAR(magnitude, wanted, 0.15 * wanted) << format << " operand " << i;
        largest = std::max(largest, magnitude);
      }
      EXPECT_FLOAT_EQ(scales[i], static_cast<float>(largest_number / largest))
          << format << " operand " << i;
    }
  }
}

}  // namespace brrr
