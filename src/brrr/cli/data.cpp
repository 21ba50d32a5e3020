// brrr data: text files become token files, and token files say what they hold.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "brrr/cli/commands.h"
#include "brrr/data/prepare.h"
#include "brrr/data/token_set.h"
#include "brrr/report/table.h"
#include "brrr/text/tokenizer_file.h"

namespace brrr::cli {
namespace {

using TokenizerPtr = std::shared_ptr<const text::Tokenizer>;

// The tokenizer that a name or a path stands for.
TokenizerPtr find_tokenizer(const std::string& name) {
  const std::vector<std::string> specials{std::string(text::kEndOfText)};
  if (name == "byte") return text::make_tokenizer(text::define_byte_tokenizer(specials));
  check(std::filesystem::exists(name), "tokenizer \"", name,
        "\": there is no such file or folder; make one with `brrr tokenize train`, or use byte");
  return text::load_tokenizer(name);
}

TokenEncoder encoder_of(const TokenizerPtr& tokenizer) {
  std::optional<int64_t> end_of_text;
  if (const auto id = tokenizer->end_of_text()) end_of_text = *id;
  return {.encode = [tokenizer](std::string_view text) { return tokenizer->encode(text); },
          .vocab_size = tokenizer->vocab_size(),
          .hash = fmt::format("{:016x}", tokenizer->hash()),
          .end_of_text = end_of_text};
}

// ---- prepare -----------------------------------------------------------------------------------------
struct PrepareArguments {
  std::vector<std::string> files;
  std::string tokenizer;
  std::string out;
  double shard_mib = 256;
  bool json = false;
  PrepareOptions options;
};

nlohmann::json json_of(const ShardsWritten& written) {
  nlohmann::json files = nlohmann::json::array();
  for (const auto& path : written.paths) files.push_back(path.string());
  return {{"files", files}, {"tokens", written.token_count}, {"documents", written.document_count}};
}

void run_prepare(PrepareArguments arguments) {
  check(arguments.shard_mib > 0 && arguments.shard_mib < 1e9, "--shard-mib ", arguments.shard_mib,
        ": a size between 0 and 1e9 is needed");
  arguments.options.folder = arguments.out;
  arguments.options.shard_bytes =
      Bytes(static_cast<int64_t>(arguments.shard_mib * static_cast<double>((1_MiB).value())));
  const std::vector<std::filesystem::path> files(arguments.files.begin(), arguments.files.end());
  const TokenizerPtr tokenizer = find_tokenizer(arguments.tokenizer);
  const TokenEncoder encoder = encoder_of(tokenizer);
  const Prepared prepared = prepare_tokens(files, encoder, arguments.options);
  // Beside the tokens, so that who trains on them can write and read text.
  text::save_tokenizer(*tokenizer, (arguments.options.folder / text::kTokenizerFileName).string());

  if (arguments.json) {
    const nlohmann::json report{
        {"folder", arguments.out},          {"text_bytes", prepared.text_bytes.value()},
        {"tokenizer_hash", encoder.hash},   {"vocab_size", encoder.vocab_size},
        {"train", json_of(prepared.train)}, {"validation", json_of(prepared.validation)}};
    std::puts(report.dump(1).c_str());
    return;
  }
  report::Table table({"split", "files", "documents", "tokens", "bytes of text a token"});
  const int64_t tokens = prepared.train.token_count + prepared.validation.token_count;
  const double ratio =
      static_cast<double>(prepared.text_bytes.value()) / static_cast<double>(tokens);
  for (const auto& [split, written] :
       {std::pair("train", &prepared.train), std::pair("validation", &prepared.validation)}) {
    table.row(split, written->paths.size(), written->document_count, written->token_count,
              fmt::format("{:.2f}", ratio));
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf("\n%s of text are now tokens in %s\n", to_text(prepared.text_bytes).c_str(),
              arguments.out.c_str());
}

void add_prepare(CLI::App& data) {
  CLI::App* command = data.add_subcommand("prepare", "Turn text files into files of tokens");
  const auto arguments = std::make_shared<PrepareArguments>();
  command->add_option("files", arguments->files, "Text files")->required();
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer file, or byte")->required();
  command->add_option("--out", arguments->out, "Folder for the token files")->required();
  command->add_option(
      "--separator", arguments->options.separator,
      "Text between documents, such as \"<|endoftext|>\"; without it a file is one");
  command
      ->add_option("--validation", arguments->options.validation_part,
                   "Part of the documents to hold out")
      ->capture_default_str();
  command->add_option("--seed", arguments->options.seed, "Chooses what is held out")
      ->capture_default_str();
  command->add_option("--shard-mib", arguments->shard_mib, "Size of one file of tokens, in MiB")
      ->capture_default_str();
  command->add_flag("--force", arguments->options.replace, "Replace token files in the folder");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  brrr tokenize train --vocab 8192 --out tok.json stories.txt\n"
      "  brrr data prepare stories.txt --separator '<|endoftext|>' --tokenizer tok.json --out "
      "corpus\n"
      "  brrr train corpus                             the folder has the tokenizer with it");
  command->callback([arguments] { run_prepare(*arguments); });
}

// ---- info --------------------------------------------------------------------------------------------
struct InfoArguments {
  std::string path;
  std::string raw_dtype;
  bool verify = false;
  bool json = false;
};

// Every token file that the path stands for. A folder's rows of shards are checked to be whole.
std::vector<std::shared_ptr<const TokenFile>> open_files(const InfoArguments& arguments) {
  TokenFileOptions options;
  if (!arguments.raw_dtype.empty()) options.raw_dtype = parse_dtype(arguments.raw_dtype);
  const std::filesystem::path path(arguments.path);
  std::vector<std::shared_ptr<const TokenFile>> files;
  const auto add = [&](const TokenSet& tokens) {
    for (const TokenRange& range : tokens.ranges) files.push_back(range.file);
  };
  if (!std::filesystem::is_directory(path)) {
    add(open_tokens(path, "train", options));
  } else {
    for (const char* split : {"train", "validation"}) {
      if (split == std::string_view("train") || !find_shards(path, split).empty())
        add(open_tokens(path, split, options));
    }
  }
  return files;
}

nlohmann::json json_of(const TokenFile& file) {
  const TokenLayout& layout = file.layout();
  nlohmann::json row{{"file", file.name()},
                     {"format", to_text(layout.format)},
                     {"dtype", to_text(layout.dtype)},
                     {"tokens", layout.token_count}};
  if (const auto documents = file.document_count()) row["documents"] = *documents;
  if (layout.shard) {
    row.update({{"version", kShardVersion},
                {"shard", layout.shard->shard_index},
                {"last", layout.shard->is_last},
                {"vocab_size", layout.shard->vocab_size},
                {"tokenizer_hash", layout.shard->tokenizer_hash}});
    if (layout.shard->end_of_text >= 0) row["end_of_text"] = layout.shard->end_of_text;
  }
  return row;
}

void run_info(const InfoArguments& arguments) {
  const auto files = open_files(arguments);
  if (arguments.verify) {
    for (const auto& file : files) file->verify();
  }
  int64_t tokens = 0;
  nlohmann::json rows = nlohmann::json::array();
  report::Table table(
      {"file", "format", "dtype", "tokens", "documents", "vocabulary", "tokenizer"});
  for (const auto& file : files) {
    tokens += file->token_count();
    rows.push_back(json_of(*file));
    const auto& shard = file->layout().shard;
    const auto documents = file->document_count();
    table.row(std::filesystem::path(file->name()).filename().string(), file->layout().format,
              file->layout().dtype, file->token_count(),
              documents ? std::to_string(*documents) : "",
              shard ? std::to_string(shard->vocab_size) : "",
              shard ? shard->tokenizer_hash.substr(0, 12) : "");
  }
  if (arguments.json) {
    const nlohmann::json report{
        {"files", rows}, {"tokens", tokens}, {"verified", arguments.verify}};
    std::puts(report.dump(1).c_str());
    return;
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf("\n%lld tokens%s\n", static_cast<long long>(tokens),
              arguments.verify ? "; every checksum holds" : "");
}

void add_info(CLI::App& data) {
  CLI::App* command = data.add_subcommand(
      "info", "Say what a token file, or a folder of them, holds (brrr, llm.c, nanoGPT, npy, raw)");
  const auto arguments = std::make_shared<InfoArguments>();
  command->add_option("path", arguments->path, "File or folder")->required();
  command->add_option("--raw", arguments->raw_dtype,
                      "Read as raw integers: u8 u16 u32 i16 i32 i64");
  command->add_flag("--verify", arguments->verify, "Read everything and check every checksum");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer("Example:\n  brrr data info corpus --verify");
  command->callback([arguments] { run_info(*arguments); });
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "Prepare and inspect files of tokens");
  command->require_subcommand(1);
  add_prepare(*command);
  add_info(*command);
}

}  // namespace brrr::cli
