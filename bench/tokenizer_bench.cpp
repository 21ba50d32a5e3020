// Encoding with GPT-2's and cl100k's vocabularies, and training 8192 ids, on dickens.txt (10 MB).
// bench/peers/tiktoken_tokenizer.py measures the same under the same names with tiktoken and Hugging Face
// tokenizers. The files are looked for under $BRRR_DATA, else ../shared/data.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "brrr/text/tokenizer_file.h"
#include "brrr/text/train_bpe.h"
#include "harness.h"

namespace {

using namespace brrr;

std::string data_path(const std::string& name) {
  const char* given = std::getenv("BRRR_DATA");
  return join_text(given ? given : "../shared/data", "/", name);
}

std::string read_text(const std::string& name) {
  std::ifstream file(data_path(name), std::ios::binary);
  check(file.is_open(), "no ", data_path(name), "; set BRRR_DATA to the folder that has it");
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

constexpr double kTextBytes = 10'192'446;

void add_encoding(const std::string& name, const char* vocabulary, int threads) {
  bench::add_case(name, "bytes", kTextBytes, [=]() -> std::function<void()> {
    set_num_threads(threads);
    const std::shared_ptr<text::Tokenizer> tokenizer = text::load_tokenizer(data_path(vocabulary));
    return [tokenizer, text = read_text("text/dickens.txt")] {
      benchmark::DoNotOptimize(tokenizer->encode(text));
    };
  });
}

void add_training(const std::string& name, int threads) {
  bench::add_case(name, "bytes", kTextBytes, [=]() -> std::function<void()> {
    set_num_threads(threads);
    return [text = read_text("text/dickens.txt")] {
      const std::vector<std::string_view> documents{text};
      benchmark::DoNotOptimize(text::train_bpe(documents, {.vocab_size = 8192}));
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  for (int threads : {1, 2}) {
    const std::string suffix = threads == 1 ? "_one_thread" : "_two_threads";
    add_encoding("encode_gpt2" + suffix, "tokenizers/gpt2/tokenizer.json", threads);
    add_encoding("encode_cl100k" + suffix, "tokenizers/tiktoken/cl100k_base.tiktoken", threads);
    add_training("train_8192" + suffix, threads);
  }
  return brrr::bench::run_all(argc, argv);
}
