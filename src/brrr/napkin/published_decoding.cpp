// Decoding and prefill of published systems: one beside bounds that nothing beats, one predicted from the graph.
#include "brrr/napkin/inference.h"
#include "brrr/napkin/published.h"

namespace brrr {
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

void add_bounds(std::vector<PublishedCase>& cases) {
  const auto add = [&](const char* what, double published, double limit, const char* reason) {
    cases.push_back({.id = "A30",
                     .what = what,
                     .unit = "tok/s",
                     .published = published,
                     .predicted = limit,
                     .kind = CaseClass::bound,
                     .band = 0,
                     .source = "gpt-fast",
                     .reason = reason});
  };
  cases.push_back({.id = "A30",
                   .what = "Llama-2-7B bf16, batch 1, A100-80: the bound itself",
                   .unit = "tok/s",
                   .published = 154.3,
                   .predicted = tokens_per_second(2),
                   .source = "gpt-fast"});
  const char* launches =
      "bytes at the data sheet's bandwidth, and no launch: 12 % less is what copies reach, and the "
      "smaller the weights the more kernels wait for one another";
  add("Llama-2-7B bf16, batch 1, A100-80", 104.9, tokens_per_second(2), launches);
  add("int8", 155.6, tokens_per_second(1), launches);
  add("int4, groups of 32", 196.8, tokens_per_second(weight_bytes_of("int4")), launches);
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
  constexpr double kOnOne = 104.9;  // tokens a second, the bound above
  cases.push_back(
      {.id = "A30",
       .what = "bf16 over 8 devices",
       .unit = "tok/s",
       .published = 328.4,
       .predicted = 1 / seconds_on_several(question("llama2-7b", "a100-80", 1, 8), 1 / kOnOne),
       .kind = CaseClass::predicted,
       .band = usual_band(CaseClass::predicted),
       .source = "gpt-fast",
       .calibration = "speed of gpt-fast's kernels from one device, 104.9 tokens/s"});
}

// FasterTransformer's 13B, 40 layers, over a prompt of 512 tokens, half precision; in seconds.
constexpr double kPrefillOnOne = 63.17e-3, kTokenOnOne = 22.0e-3;
// Its profile of a token on two devices has 40 to 50 us of communication in a layer.
constexpr double kProfiledReduces = 40 * 45e-6;

// A prompt on two devices: kernels at the share of their speed that they had in the prefill of one, all-reduces at that
// in the profile of a token.
double prefill_on_two(const InferPrediction& one, const InferPrediction& two) {
  const double kernels = two.prefill_seconds - two.prefill_reduce_seconds;
  return kernels * kPrefillOnOne / one.prefill_seconds +
         two.prefill_reduce_seconds * kProfiledReduces / two.decode_reduce_seconds;
}

void add_predictions(std::vector<PublishedCase>& cases) {
  const auto add = [&](const char* what, double milliseconds, double seconds,
                       const char* calibration) {
    cases.push_back({.id = "A31",
                     .what = what,
                     .unit = "ms",
                     .published = milliseconds,
                     .predicted = 1e3 * seconds,
                     .kind = CaseClass::predicted,
                     .band = usual_band(CaseClass::predicted),
                     .source = "FasterTransformer",
                     .calibration = calibration});
  };
  const auto predicted = [](int64_t count) {
    const auto prediction = predict(question("llama2-13b", "a100-40", 512, count));
    if (!prediction) fail("40 heads are not split over ", count);
    return *prediction;
  };
  const InferPrediction one = predicted(1), two = predicted(2);
  add("13B, A100-40, prompt of 512: prefill", 1e3 * kPrefillOnOne, one.prefill_seconds, "");
  add("a token", 1e3 * kTokenOnOne, one.decode_seconds, "");
  add("two devices: prefill", 45.45, prefill_on_two(one, two),
      "speed of FasterTransformer's kernels from the prefill of one device, 63.17 ms; of its "
      "all-reduces from its profile of a token, 45 us a layer");
  add("two devices: a token", 13.5,
      seconds_on_several(question("llama2-13b", "a100-40", 512, 2), kTokenOnOne),
      "speed of FasterTransformer's kernels from a token on one device, 22.0 ms");
}

}  // namespace

std::vector<PublishedCase> decoding_cases() {
  std::vector<PublishedCase> cases;
  add_bounds(cases);
  add_eight_devices(cases);
  add_predictions(cases);
  return cases;
}

}  // namespace brrr
