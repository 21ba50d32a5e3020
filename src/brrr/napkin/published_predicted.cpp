// The memory of published runs, predicted; and bounds on decoding beside what systems reached.
#include "brrr/napkin/inference.h"
#include "brrr/napkin/published.h"
#include "brrr/napkin/run_question.h"

namespace brrr {
namespace {

constexpr double kBand = 0.15, kExact = 0.01, kGiB = 1073741824;

InferAnswer decode(const char* model, const char* gpu, double weight_bytes, int64_t context,
                   int64_t count = 1) {
  InferQuestion q{.model = model_preset(model), .gpu = gpu};
  q.weight_bytes = weight_bytes;
  q.context = context;
  q.count = count;
  return answer(q);
}

}  // namespace

std::vector<PublishedCase> predicted_cases() {
  std::vector<PublishedCase> cases = published_speeds();
  const auto predicted = [&](const char* id, const char* what, const char* unit, double published,
                             double ours, const char* source, double band = kBand,
                             const char* reason = "") {
    cases.push_back({.id = id,
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = ours,
                     .kind = CaseClass::predicted,
                     .band = band,
                     .source = source,
                     .reason = reason});
  };
  const auto titan = [](bool fuse) {
    RunQuestion q;
    q.model = llama_preset("llama3-8b");
    q.tokens = 1e9;
    q.gpu = "h100-nvl", q.count = 8;
    q.seq = 8192, q.global_batch = 16, q.micro_batch = 2;
    q.layout.zero = 3;
    q.recompute = RematPolicy::selective;
    q.fuse = fuse;
    return answer(q).memory.total() / kGiB;
  };
  const char* another = "what another system keeps under its own selective policy";
  predicted("A22", "torchtitan, Llama-3.1-8B, FSDP, compiled: memory", "GiB", 77.0, titan(true),
            "torchtitan", kBand, another);
  predicted("A22", "eager: memory", "GiB", 82.4, titan(false), "torchtitan", kBand, another);
  const auto bound = [&](const char* id, const char* what, const char* unit, double published,
                         double limit, const char* source) {
    cases.push_back({.id = id,
                     .what = what,
                     .unit = unit,
                     .published = published,
                     .predicted = limit,
                     .kind = CaseClass::bound,
                     .band = 0,
                     .source = source});
  };
  predicted("A30", "Llama-2-7B bf16, batch 1, A100-80: the bound itself", "tok/s", 154.3,
            decode("llama2-7b", "a100-80", 2, 1).tokens_per_second, "gpt-fast", kExact);
  bound("A30", "Llama-2-7B bf16, batch 1, A100-80", "tok/s", 104.9,
        decode("llama2-7b", "a100-80", 2, 1).tokens_per_second, "gpt-fast");
  bound("A30", "int8", "tok/s", 155.6, decode("llama2-7b", "a100-80", 1, 1).tokens_per_second,
        "gpt-fast");
  bound("A30", "int4, groups of 32", "tok/s", 196.8,
        decode("llama2-7b", "a100-80", weight_bytes_of("int4"), 1).tokens_per_second, "gpt-fast");
  bound("A30", "bf16 over 8 devices", "tok/s", 328.4,
        decode("llama2-7b", "a100-80", 2, 1, 8).tokens_per_second, "gpt-fast");
  const InferAnswer one = decode("llama2-13b", "a100-40", 2, 512),
                    two = decode("llama2-13b", "a100-40", 2, 512, 2);
  bound("A31", "13B, A100-40, prompt of 512: prefills a second", "1/s", 1 / 63.17e-3,
        1 / one.prefill_seconds, "FasterTransformer");
  bound("A31", "tokens a second", "1/s", 1 / 22.0e-3, 1 / one.decode_seconds, "FasterTransformer");
  bound("A31", "two devices: prefills a second", "1/s", 1 / 45.45e-3, 1 / two.prefill_seconds,
        "FasterTransformer");
  bound("A31", "two devices: tokens a second", "1/s", 1 / 13.5e-3, 1 / two.decode_seconds,
        "FasterTransformer");
  return cases;
}

}  // namespace brrr
