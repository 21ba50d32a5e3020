// libFuzzer on config.json of Hugging Face: a file is a model within the limits of a plan, whose count is a number, or
// an Error is thrown; as a model to load and as sizes alone.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/infer/huggingface.h"
#include "brrr/plan/model/model_limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    (void)brrr::infer::config_from_huggingface(text);
  } catch (const brrr::Error&) {  // what a file that is no model's should do
  }
  try {
    const brrr::ModelConfig config = brrr::infer::shape_from_huggingface(text);
    brrr::plan::check_model(config);
    const double count = brrr::plan::parameters_of(config);
    if (!(count >= 1 && count <= brrr::plan::kMostParameters)) std::abort();
    brrr::plan::check_micro_batch(config, 1, 2048);
  } catch (const brrr::Error&) {
  }
  return 0;
}
