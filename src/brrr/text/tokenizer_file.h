// Tokenizers in files. Four forms are read and written:
//   brrr         one JSON file of ours with a version and a checksum; every tokenizer fits in it
//   huggingface  tokenizer.json, for byte-level BPE
//   gpt2         a folder with vocab.json and merges.txt (or, when reading, encoder.json and vocab.bpe)
//   tiktoken     NAME.tiktoken, and beside it NAME.meta.json with the pattern and the special tokens
// Files are not trusted: what does not hold is an Error that names the file and the rule.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "brrr/text/definition.h"
#include "brrr/text/tokenizer.h"

namespace brrr::text {

struct LoadOptions {
  // The pattern, or its name, for files that do not say it: .tiktoken without .meta.json. For vocab.json
  // and merges.txt it is GPT-2's unless given here.
  std::string pattern;
};

// `path` is a file of one of the forms above, or a folder that has one: tokenizer.brrr.json,
// tokenizer.json, vocab.json with merges.txt, encoder.json with vocab.bpe, or a single .tiktoken.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const LoadOptions& options = {});

enum class FileForm : uint8_t {
  by_name,  // .tiktoken; tokenizer.json is Hugging Face's; a folder gets vocab.json and merges.txt; others brrr
  brrr,
  huggingface,
  gpt2,
  tiktoken,
};
void save_tokenizer(const Tokenizer& tokenizer, const std::string& path,
                    FileForm form = FileForm::by_name);

// The name under which a folder (a checkpoint, say) carries a tokenizer of any kind.
inline constexpr std::string_view kTokenizerFileName = "tokenizer.brrr.json";

// ---- the forms as text; `name` is the file, for messages ------------------------------------------
// Both forms that are one JSON file.
TokenizerDefinition parse_tokenizer_json(std::string_view json, const std::string& name);
std::string to_brrr_json(const TokenizerDefinition& definition);
std::string to_huggingface_json(const TokenizerDefinition& definition);

struct VocabFiles {
  std::string vocab_json, merges_txt;
};
TokenizerDefinition parse_vocab_files(const VocabFiles& files, const std::string& pattern,
                                      const std::string& name);
VocabFiles to_vocab_files(const TokenizerDefinition& definition);

struct TiktokenFiles {
  std::string ranks, meta_json;  // meta_json may be empty
};
// `pattern` is used where meta_json has none.
TokenizerDefinition parse_tiktoken(const TiktokenFiles& files, const std::string& pattern,
                                   const std::string& name);
TiktokenFiles to_tiktoken(const TokenizerDefinition& definition);

}  // namespace brrr::text
