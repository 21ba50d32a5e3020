// Decoding and prefill of published systems: one beside bounds that nothing beats, one predicted from the graph.
#include "brrr/plan/inference.h"
#include "brrr/plan/published/published_toml.h"

namespace brrr::plan {
namespace {

InferQuestion question(const char* model, const char* gpu, int64_t context, int64_t count) {
  InferQuestion q{.model = model_preset(model), .gpu = gpu};
  q.context = context;
  q.count = count;
  return q;
}

// One token after another, no cache yet: the weights through the memory.
double tokens_per_second(double weight_bytes) {
  InferQuestion q = question("llama2-7b", "a100-80", 1, 1);
  q.weight_bytes = weight_bytes;
  return answer(q).tokens_per_second;
}

void add(std::vector<PublishedCase>& cases, std::string_view key, double predicted) {
  cases.push_back(number_case("decoding", key, predicted));
}
double published(std::string_view key) { return number_case("decoding", key, 0).published; }

void add_bounds(std::vector<PublishedCase>& cases) {
  add(cases, "A30.bound", tokens_per_second(2));
  add(cases, "A30.bf16", tokens_per_second(2));
  add(cases, "A30.int8", tokens_per_second(1));
  add(cases, "A30.int4", tokens_per_second(weight_bytes_of("int4")));
}

// A token on several devices: kernels at the share of their speed that they had on one, all-reduces as priced.
double seconds_on_several(const InferQuestion& several, double seconds_on_one) {
  InferQuestion alone = several;
  alone.count = 1;
  const auto one = predict(alone), all = predict(several);
  if (!one || !all) fail("heads are not split over ", several.count);
  const double kernels = all->decode_seconds - all->decode_reduce_seconds;
  return kernels * seconds_on_one / one->decode_seconds + all->decode_reduce_seconds;
}

void add_eight_devices(std::vector<PublishedCase>& cases) {
  const double on_one = 1 / published("A30.bf16");
  add(cases, "A30.bf16_8", 1 / seconds_on_several(question("llama2-7b", "a100-80", 1, 8), on_one));
}

// FasterTransformer's 13B, 40 layers, over a prompt of 512 tokens, half precision.
// The profile of a token on two devices has 40 to 50 us of communication in a layer.
constexpr double kProfiledReduces = 40 * 45e-6;

// A prompt on two devices: kernels at the share of their speed that they had in the prefill of one, all-reduces at that
// in the profile of a token.
double prefill_on_two(const InferPrediction& one, const InferPrediction& two) {
  const double kernels = two.prefill_seconds - two.prefill_reduce_seconds,
               prefill_on_one = published("A31.prefill") / 1e3;
  return kernels * prefill_on_one / one.prefill_seconds +
         two.prefill_reduce_seconds * kProfiledReduces / two.decode_reduce_seconds;
}

void add_predictions(std::vector<PublishedCase>& cases) {
  const auto predicted = [](int64_t count) {
    const auto prediction = predict(question("llama2-13b", "a100-40", 512, count));
    if (!prediction) fail("40 heads are not split over ", count);
    return *prediction;
  };
  const InferPrediction one = predicted(1), two = predicted(2);
  const double token_on_one = published("A31.token") / 1e3;
  add(cases, "A31.prefill", 1e3 * one.prefill_seconds);
  add(cases, "A31.token", 1e3 * one.decode_seconds);
  add(cases, "A31.prefill_2", 1e3 * prefill_on_two(one, two));
  add(cases, "A31.token_2",
      1e3 * seconds_on_several(question("llama2-13b", "a100-40", 512, 2), token_on_one));
}

}  // namespace

std::vector<PublishedCase> decoding_cases() {
  std::vector<PublishedCase> cases;
  add_bounds(cases);
  add_eight_devices(cases);
  add_predictions(cases);
  return cases;
}

}  // namespace brrr::plan
