#include "brrr/nn/families/families.h"

#include "brrr/nn/families/gemma2.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/nn/families/llama.h"
#include "brrr/nn/families/qwen3.h"
#include "brrr/nn/families/recurrent_lm.h"

namespace brrr {

std::vector<const ModelFamily*> built_in_families() {
  return {&Gpt2Config::family(), &LlamaConfig::family(), &Qwen3Config::family(),
          &Gemma2Config::family(), &RecurrentLmConfig::family()};
}

}  // namespace brrr
