// Tokens drawn on a GPU are those that kernels/scalar/sampling draws on the cpu: vocabularies of real models, every option
// alone and all together, ties, logits that rule tokens out and logits that no model should give; and texts of
// models that draw there.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "brrr/device/default_device.h"
#include "brrr/infer/generator.h"
#include "brrr/nn/models.h"
#include "brrr/ops/random/sample_tokens.h"
#include "brrr/ops/reduce/reduce.h"
#include "cuda/rows.h"
#include "support/error_of.h"

namespace brrr {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Named {
  std::string name;
  SamplingOptions options;
};

std::vector<Named> option_sets() {
  return {{"plain", {}},
          {"cold", {.temperature = 0.3}},
          {"hot", {.temperature = 50}},
          {"greedy", {.temperature = 0}},
          {"greedy with a penalty", {.temperature = 0, .repetition_penalty = 1.7}},
          {"top 1", {.top_k = 1}},
          {"top 40", {.top_k = 40}},
          {"top 40000", {.temperature = 20, .top_k = 40000}},
          {"top 90%", {.top_p = 0.9}},
          {"top 90%, hot", {.temperature = 5, .top_p = 0.9}},
          {"top 0.01%", {.top_p = 0.0001}},
          {"min 5%", {.temperature = 3, .min_p = 0.05}},
          {"penalty", {.temperature = 3, .repetition_penalty = 1.3}},
          {"reward", {.repetition_penalty = 0.8}},
          {"all",
           {.temperature = 1.5,
            .top_k = 200,
            .top_p = 0.95,
            .min_p = 0.001,
            .repetition_penalty = 1.2}}};
}

// Which tokens each row has seen: a third, at other places in every row.
bool is_seen(int64_t row, int64_t id) { return (id * 7919 + row * 31) % 3 == 0; }

// What sample_token says of the same numbers, row by row.
void expect_draws_of_the_cpu(const Tensor& logits, const SamplingOptions& options, bool with_seen) {
  NoGrad no_tape;
  const int64_t rows = logits.dim(0), vocab = logits.dim(1);
  std::vector<DrawPlace> places;
  const Tensor flags = zeros(logits.shape(), {.dtype = DType::boolean, .device = Device::cpu()});
  std::vector<int64_t> expected;
  for (int64_t row = 0; row < rows; ++row) {
    places.push_back({.sample = static_cast<uint32_t>(row + 3), .position = 1000});
    std::vector<int32_t> seen;
    for (int64_t id = 0; with_seen && id < vocab; ++id) {
      flags.data<bool>()[row * vocab + id] = is_seen(row, id);
      if (is_seen(row, id)) seen.push_back(static_cast<int32_t>(id));
    }
    expected.push_back(sample_token(logits[row].to_vector<float>(), seen, options, places.back()));
  }
  const Tensor there = to(logits, kGpu), settings = to(draw_settings(options), kGpu),
               keys = to(draw_keys(options, places), kGpu);
  const Tensor seen = with_seen ? to(flags, kGpu) : Tensor();
  for (int round = 0; round < 2; ++round) {
    const DrawnTokens drawn = draw_tokens(there, settings, keys, seen);
    EXPECT_EQ(to(drawn.ids, Device::cpu()).to_vector<int64_t>(), expected) << "round " << round;
    EXPECT_THAT(to(drawn.status, Device::cpu()).to_vector<int64_t>(), testing::Each(kUsableLogits));
  }
}

// 50257: GPT-2. 151936: Qwen. 300007: more than the shared memory of a cluster holds. bf16 has thousands of ties.
TEST(CudaDraws, AreThoseOfTheCpuForEveryOption) {
  BRRR_NEEDS_GPU();
  uint32_t draw = 1;
  for (int64_t vocab : {50257, 151936, 300007}) {
    for (int64_t rows : {1, 7}) {
      for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
        const Tensor logits = cast(values({rows, vocab}, DType::f32, draw++) * 4.0, dtype);
        for (auto [name, options] : option_sets()) {
          SCOPED_TRACE(join_text(name, ", ", rows, " x ", vocab, " ", to_text(dtype)));
          options.seed = draw * 0x9E37'79B9'7F4A'7C15;
          expect_draws_of_the_cpu(logits, options, options.repetition_penalty != 1);
        }
      }
    }
  }
}

// One option set, many places of the random number: every part of the sums is met.
TEST(CudaDraws, AreThoseOfTheCpuAtManyPlaces) {
  BRRR_NEEDS_GPU();
  const Tensor row = values({1, 50257}, DType::f32, 77) * 2.0;
  const Tensor logits = contiguous(expand(row, {200, 50257}));
  for (double top_p : {1.0, 0.8})
    expect_draws_of_the_cpu(logits, {.top_p = top_p, .seed = 5}, false);
}

// Logits at which the search for the cut comes to its ends: everything in one bin, nothing in the others.
TEST(CudaDraws, CopeWithTiesOutliersAndRuledOutTokens) {
  BRRR_NEEDS_GPU();
  constexpr int64_t kVocab = 50257;
  const std::vector<float> spread = values({kVocab}, DType::f32, 5).to_vector<float>();
  const auto with = [&](const auto& change) {
    std::vector<float> row(spread);
    for (size_t i = 0; i < row.size(); ++i) row[i] = change(i, row[i]);
    return from_values(row, {1, kVocab});
  };
  const std::vector<std::pair<std::string, Tensor>> rows{
      {"all equal", with([](size_t, float) { return -3.5F; })},
      {"zeros of both signs", with([](size_t i, float) { return i % 2 == 0 ? 0.0F : -0.0F; })},
      {"whole numbers", with([](size_t, float x) { return std::round(2 * x); })},
      {"two thirds ruled out", with([](size_t i, float x) { return i % 3 == 1 ? x : -kInfinity; })},
      {"one left", with([](size_t i, float x) { return i == 44444 ? x : -kInfinity; })},
      {"far below", with([](size_t i, float x) { return i % 5 == 0 ? -1e30F * (2 + x / 8) : x; })},
      {"far above", with([](size_t i, float x) { return i == 50256 ? 1e30F : x; })},
      {"near the best", with([](size_t, float x) { return 1000 + x * 1e-4F; })},
      {"subnormal", with([](size_t, float x) { return x * 1e-41F; })}};
  for (const auto& [what, logits] : rows) {
    for (auto [name, options] : option_sets()) {
      SCOPED_TRACE(join_text(what, ", ", name));
      options.seed = 31;
      expect_draws_of_the_cpu(logits, options, options.repetition_penalty != 1);
    }
  }
}

TEST(CudaDraws, SayWhichLogitIsNoNumber) {
  BRRR_NEEDS_GPU();
  NoGrad no_tape;
  constexpr int64_t kVocab = 50257;
  const Tensor logits = values({4, kVocab}, DType::f32, 6);
  float* const numbers = logits.data<float>();
  numbers[31] = numbers[50000] = kInfinity;               // row 0
  numbers[kVocab + 40000] = std::nanf("");                // row 1
  numbers[kVocab + 40001] = kInfinity;                    // not the first
  std::fill_n(numbers + 2 * kVocab, kVocab, -kInfinity);  // row 2
  for (double temperature : {0.0, 1.0}) {
    const SamplingOptions options{.temperature = temperature, .top_k = 5, .top_p = 0.5};
    const std::vector<DrawPlace> places(4);
    const DrawnTokens drawn = draw_tokens(to(logits, kGpu), to(draw_settings(options), kGpu),
                                          to(draw_keys(options, places), kGpu));
    const auto status = to(drawn.status, Device::cpu()).to_vector<int64_t>();
    for (int64_t row = 0; row < 4; ++row) {
      const auto own = logits[row].to_vector<float>();
      EXPECT_EQ(error_of([&] { check_logits(status[static_cast<size_t>(row)]); }),
                error_of([&] { sample_token(own, {}, options, {}); }))
          << row;
    }
    EXPECT_EQ(status[3], kUsableLogits);
  }
}

// ---- Texts.

std::unique_ptr<LanguageModel> gpu_model() {
  Random random(7);
  return make_model(Gpt2Config{.vocab = 3001, .context = 48, .layers = 2, .heads = 2, .width = 64},
                    random);
}

const std::vector<std::vector<int32_t>> kPrompts{{5}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {2999, 9}};

std::vector<infer::Generation> texts_of(const LanguageModel& model,
                                        const infer::GenerateOptions& options,
                                        infer::DrawOn draw_on) {
  infer::Generator generator(model, {.prefill_block = 4, .draw_on = draw_on});
  return generator.generate_all(kPrompts, options);
}

// The host draws from logits that came to it; 90 tokens slide past the context.
TEST(CudaDraws, TextsAreThoseOfTheHostAndTheSameTwice) {
  BRRR_NEEDS_GPU();
  const DeviceScope scope(kGpu);
  const auto model = gpu_model();
  for (const SamplingOptions& sampling :
       {SamplingOptions{.temperature = 0.7, .seed = 1}, SamplingOptions{.temperature = 0},
        SamplingOptions{.temperature = 0.9, .top_k = 50, .top_p = 0.9, .seed = 3},
        SamplingOptions{.repetition_penalty = 1.5, .seed = 4}}) {
    infer::GenerateOptions options{.tokens = 90, .sampling = sampling, .first_sample = 2};
    for (int round = 0; round < 2; ++round) {  // the second with a stop token
      const auto host = texts_of(*model, options, infer::DrawOn::host),
                 device = texts_of(*model, options, infer::DrawOn::automatic),
                 again = texts_of(*model, options, infer::DrawOn::device);
      for (size_t row = 0; row < kPrompts.size(); ++row) {
        EXPECT_EQ(device[row].ids, host[row].ids) << row;
        EXPECT_EQ(device[row].stopped, host[row].stopped) << row;
        EXPECT_EQ(again[row].ids, device[row].ids) << row;
        EXPECT_EQ(device[row].ids.size() == 90U, !device[row].stopped) << row;
      }
      options.stop = host[0].ids[11];
    }
  }
}

TEST(CudaDraws, GreedyTextIsTheArgmaxOfTheLogits) {
  BRRR_NEEDS_GPU();
  NoGrad no_tape;
  const DeviceScope scope(kGpu);
  const auto model = gpu_model();
  const auto drawn =
      texts_of(*model, {.tokens = 30, .sampling = {.temperature = 0}}, infer::DrawOn::automatic);
  infer::Decoder decoder(*model, {.batch = 3, .block = 4});
  infer::Decoder::Rows next = kPrompts;
  for (size_t i = 0; i < 30; ++i) {
    const auto best = argmax(decoder.feed(next), 1).to_vector<int64_t>();
    for (size_t row = 0; row < kPrompts.size(); ++row) {
      ASSERT_EQ(drawn[row].ids[i], best[row]) << "row " << row << ", token " << i;
      next[row] = {static_cast<int32_t>(best[row])};
    }
  }
}

TEST(CudaDraws, TextsOfModelsThatComputeNoNumbersAreErrors) {
  BRRR_NEEDS_GPU();
  const DeviceScope scope(kGpu);
  const auto model = gpu_model();
  NoGrad writing;
  for (const Tensor& parameter : model->parameters()) parameter.fill(std::nanf(""));
  EXPECT_THAT(error_of([&] { texts_of(*model, {.tokens = 5}, infer::DrawOn::automatic); }),
              testing::HasSubstr("sampling: the logit of token 0 is nan"));
}

}  // namespace
}  // namespace brrr
