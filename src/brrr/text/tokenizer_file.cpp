#include "brrr/text/tokenizer_file.h"

#include <filesystem>

#include "brrr/base/error.h"
#include "brrr/text/file_bytes.h"

namespace brrr::text {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

TokenizerDefinition load_vocab_files(const fs::path& vocab, const fs::path& merges,
                                     const LoadOptions& options) {
  return parse_vocab_files(
      {read_tokenizer_file(vocab.string()), read_tokenizer_file(merges.string())},
      pattern_from_name(options.pattern),
      join_text(vocab.string(), ", ", merges.filename().string()));
}

fs::path meta_path(fs::path path) { return path.replace_extension(".meta.json"); }

TokenizerDefinition load_tiktoken(const fs::path& path, const LoadOptions& options) {
  TiktokenFiles files{.ranks = read_tokenizer_file(path.string()), .meta_json = ""};
  if (is_there(meta_path(path))) files.meta_json = read_tokenizer_file(meta_path(path).string());
  return parse_tiktoken(files, pattern_from_name(options.pattern), path.string());
}

// merges.txt has its vocabulary in vocab.json, vocab.bpe in encoder.json.
fs::path vocabulary_of(const fs::path& merges) {
  const fs::path folder = merges.parent_path();
  const fs::path usual = folder / "vocab.json", old = folder / "encoder.json";
  return is_there(usual) ? usual : old;
}

fs::path merges_of(const fs::path& vocab) {
  const fs::path folder = vocab.parent_path();
  const fs::path usual = folder / "merges.txt", old = folder / "vocab.bpe";
  return is_there(usual) ? usual : old;
}

TokenizerDefinition load_file(const fs::path& path, const LoadOptions& options) {
  const std::string extension = path.extension().string();
  if (extension == ".tiktoken") return load_tiktoken(path, options);
  if (extension == ".txt" || extension == ".bpe")
    return load_vocab_files(vocabulary_of(path), path, options);
  if (path.filename() == "vocab.json" || path.filename() == "encoder.json")
    return load_vocab_files(path, merges_of(path), options);
  return parse_tokenizer_json(read_tokenizer_file(path.string()), path.string());
}

fs::path file_in_folder(const fs::path& folder) {
  for (const char* name :
       {kTokenizerFileName.data(), "tokenizer.json", "vocab.json", "encoder.json"}) {
    if (is_there(folder / name)) return folder / name;
  }
  std::vector<fs::path> ranks;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".tiktoken") ranks.push_back(entry.path());
  }
  check(ranks.size() == 1, "the folder \"", folder.string(), "\" has ",
        ranks.empty() ? "no tokenizer" : "several .tiktoken files",
        "; name the file: a tokenizer.json, vocab.json with merges.txt beside it, or a .tiktoken");
  return ranks[0];
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const LoadOptions& options) {
  check(is_there(path), "there is no tokenizer at \"", path, "\"");
  const fs::path file = fs::is_directory(path) ? file_in_folder(path) : fs::path(path);
  TokenizerDefinition definition = load_file(file, options);
  try {
    return make_tokenizer(std::move(definition));
  } catch (const Error& error) {
    fail("\"", file.string(), "\": ", error.what());
  }
}

void save_tokenizer(const Tokenizer& tokenizer, const std::string& path, FileForm form) {
  const TokenizerDefinition& definition = tokenizer.definition();
  const fs::path target(path);
  if (form == FileForm::by_name) {
    const bool is_folder = target.filename().empty() || fs::is_directory(target);
    form = is_folder                               ? FileForm::gpt2
           : target.extension() == ".tiktoken"     ? FileForm::tiktoken
           : target.filename() == "tokenizer.json" ? FileForm::huggingface
                                                   : FileForm::brrr;
  }
  switch (form) {
    case FileForm::by_name: break;
    case FileForm::brrr: replace_file(path, to_brrr_json(definition)); return;
    case FileForm::huggingface: replace_file(path, to_huggingface_json(definition)); return;
    case FileForm::gpt2: {
      const VocabFiles files = to_vocab_files(definition);
      fs::create_directories(target);
      replace_file((target / "vocab.json").string(), files.vocab_json);
      replace_file((target / "merges.txt").string(), files.merges_txt);
      return;
    }
    case FileForm::tiktoken: {
      const TiktokenFiles files = to_tiktoken(definition);
      replace_file(meta_path(target).string(), files.meta_json);
      replace_file(path, files.ranks);
      return;
    }
  }
}

}  // namespace brrr::text
