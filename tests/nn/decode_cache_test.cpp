// A cached step as a program: caches are written where they lie, and nothing else of them is moved. What the
// logits are is in tests/infer/decoder_test.cpp.
#include "brrr/nn/decode_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/nn/models.h"
#include "brrr/ops/op_list.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

using testing::HasSubstr;

Tensor numbers(const std::vector<int64_t>& values, const Shape& shape) {
  return from_values(values, shape);
}

struct Case {
  const char* preset;
  int caches;  // tensors that grow with the tokens
};

TEST(DecodeCache, IsWrittenInPlace) {
  for (const auto& [preset, caches] :
       {Case{"gpt2-tiny", 8}, Case{"llama-tiny", 4}, Case{"llama-mla-tiny", 2}}) {
    Random random(1);
    const auto model = make_model(model_preset(preset), random);
    const DecodeCache cache = model->make_cache(2, 72);
    auto step =
        runtime::compile([&](const Tensor& tokens, const Tensor& starts, const Tensor& counts) {
          NoGrad inference;
          const DecodeInputs decode{&cache, starts, counts};
          return model->hidden(tokens, {.decode = &decode});
        });
    const Tensor tokens = numbers({7, 8}, {2, 1}), starts = numbers({3, 50}, {2}),
                 counts = numbers({1, 1}, {2});
    step(tokens, starts, counts);
    const compiler::KernelList& list =
        step.function().executable({{tokens, starts, counts}}).kernels();
    int in_place = 0;
    for (const compiler::Kernel& kernel : list.kernels) {
      EXPECT_NE(kernel.op, &copy_op) << preset << ": " << kernel.name;
      if (kernel.op != &update_slice_op) continue;
      const compiler::BufferId written = kernel.outputs[0].buffer;
      EXPECT_EQ(written, kernel.inputs[0].buffer);
      in_place += list.buffers[written.index()].place == compiler::Place::state;
    }
    EXPECT_EQ(in_place, caches) << preset;
  }
}

// Each row at its own place, and only there.
TEST(DecodeCache, HoldsWhatWasWritten) {
  Random random(1);
  const auto model = make_model(model_preset("llama-tiny"), random);
  const DecodeCache cache = model->make_cache(2, 72);
  const DecodeInputs decode{&cache, numbers({3, 50}, {2}), numbers({1, 1}, {2})};
  NoGrad inference;
  model->hidden(numbers({7, 8}, {2, 1}), {.decode = &decode});
  const Tensor& keys = cache.layers[0][0];
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t place = 0; place < 72; ++place) {
      double largest = 0;
      for (int64_t head = 0; head < keys.dim(1); ++head) {
        for (float x : keys[row][head][place].to_vector<float>())
          largest = std::max(largest, std::fabs(double{x}));
      }
      EXPECT_EQ(largest > 0, place == (row == 0 ? 3 : 50)) << row << ", " << place;
    }
  }
  cache.clear();
  for (float x : keys.to_vector<float>()) ASSERT_EQ(x, 0);
}

TEST(DecodeCache, SaysWhatCannotBe) {
  Random random(1);
  const auto model = make_model(model_preset("llama-tiny"), random);
  const DecodeCache cache = model->make_cache(1, 8);
  const DecodeInputs late{&cache, numbers({8}, {1}), numbers({1}, {1})};
  EXPECT_THAT(error_of([&] {
                model->hidden(numbers({7}, {1, 1}), {.decode = &late});
              }),
              HasSubstr("position 8 puts a source of size 1 outside"));
  const DecodeInputs decode{&cache, numbers({0}, {1}), numbers({1}, {1})};
  EXPECT_THAT(
      error_of([&] {
        model->hidden(numbers({7}, {1, 1}), {.documents = numbers({0}, {1, 1}), .decode = &decode});
      }),
      HasSubstr("documents"));
}

}  // namespace
}  // namespace brrr
