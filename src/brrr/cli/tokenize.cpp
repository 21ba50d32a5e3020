// brrr tokenize: makes tokenizers, and turns text into ids and back.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "brrr/base/thread_pool.h"
#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/report/table.h"
#include "brrr/text/char_set.h"
#include "brrr/text/stream.h"
#include "brrr/text/tokenizer_file.h"
#include "brrr/text/train_bpe.h"
#include "brrr/text/utf8.h"

namespace brrr::cli {
namespace {

using text::Tokenizer;

// What all four have.
struct CommonOptions {
  std::string tokenizer;  // a file or a folder
  std::string pattern;
  bool specials = false;
  bool json = false;
};

std::unique_ptr<Tokenizer> load(const CommonOptions& options) {
  return text::load_tokenizer(options.tokenizer, {.pattern = options.pattern});
}

text::Specials specials(const CommonOptions& options) {
  return options.specials ? text::Specials::as_tokens : text::Specials::as_text;
}

nlohmann::json facts(const Tokenizer& tokenizer) {
  nlohmann::json result{{"tokenizer", tokenizer.description()},
                        {"vocab_size", tokenizer.vocab_size()},
                        {"hash", fmt::format("{:016x}", tokenizer.hash())}};
  if (const auto id = tokenizer.end_of_text()) result["end_of_text"] = *id;
  return result;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Calls take(ids) for all ids of a file, or of the standard input for "-"; returns the bytes read.
int64_t encode_source(const Tokenizer& tokenizer, const std::string& source,
                      const CommonOptions& options, const text::TakeIds& take) {
  if (source == "-")
    return text::encode_stream(tokenizer, std::cin, "standard input", specials(options), take);
  return text::encode_file(tokenizer, source, specials(options), take);
}

// ---- train -------------------------------------------------------------------------------------

struct TrainCommand {
  std::vector<std::string> files;
  std::string kind = "bpe", pattern = "gpt2", out;
  int64_t vocab_size = 8192, min_count = 2;
  std::vector<std::string> specials{std::string(text::kEndOfText)};
  bool no_bytes = false;
  bool json = false;
};

text::TokenizerDefinition train_chars(const TrainCommand& command) {
  text::CharSet characters;
  for (const std::string& path : command.files) {
    text::read_file_in_parts(path, [&](std::string_view part, text::TextEnd end) {
      return characters.add_part(part, end);
    });
  }
  return characters.define(
      command.no_bytes ? text::UnknownCharacters::refuse : text::UnknownCharacters::as_bytes,
      command.specials);
}

text::TokenizerDefinition train(const TrainCommand& command) {
  if (command.kind == "byte") return text::define_byte_tokenizer(command.specials);
  check(!command.files.empty(), "a ", command.kind,
        " tokenizer is made from text; name files: brrr tokenize train FILE... --out NAME.json");
  if (command.kind == "char") return train_chars(command);
  return text::train_bpe_on_files(command.files,
                                  {.vocab_size = command.vocab_size,
                                   .pattern = text::pattern_from_name(command.pattern),
                                   .specials = command.specials,
                                   .min_count = command.min_count});
}

void run_train(const TrainCommand& command) {
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = text::make_tokenizer(train(command));
  text::save_tokenizer(*tokenizer, command.out);
  const double seconds = seconds_since(start);
  if (command.json) {
    nlohmann::json result = facts(*tokenizer);
    result["file"] = command.out;
    result["seconds"] = seconds;
    std::puts(result.dump(1).c_str());
    return;
  }
  std::printf("%s\nwritten to %s after %s\n", tokenizer->description().c_str(), command.out.c_str(),
              to_text(Seconds(seconds)).c_str());
  if (command.kind == "bpe" && tokenizer->vocab_size() < command.vocab_size)
    std::printf(
        "the text has no more pairs that stand %s times, so it has fewer ids than asked for\n",
        with_commas(command.min_count).c_str());
}

void add_train_tokenizer(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("train", "Make a tokenizer from text files");
  const auto options = std::make_shared<TrainCommand>();
  command->add_option("files", options->files, "Text files; they may be larger than memory");
  command
      ->add_option("--out", options->out,
                   "Where to write: NAME.json (brrr's form), tokenizer.json (Hugging Face's), "
                   "NAME.tiktoken, or FOLDER/ for vocab.json and merges.txt")
      ->required();
  command->add_option("--kind", options->kind, "bpe, char or byte")
      ->check(CLI::IsMember({"bpe", "char", "byte"}))
      ->capture_default_str();
  command->add_option("--vocab", options->vocab_size, "Ids of a bpe tokenizer, all included")
      ->capture_default_str();
  command
      ->add_option("--pattern", options->pattern,
                   "How text is cut into words: gpt2, cl100k, or a PCRE2 pattern")
      ->capture_default_str();
  command
      ->add_option("--special", options->specials,
                   "Special tokens; a document ends where one stands in the text")
      ->capture_default_str();
  command->add_option("--min-count", options->min_count, "Rarer pairs are not merged")
      ->capture_default_str();
  command->add_flag("--no-bytes", options->no_bytes,
                    "A char tokenizer with the text's characters alone: others are an error");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  brrr tokenize train book.txt --vocab 8192 --out book.json\n"
      "  brrr tokenize train a.txt b.txt --pattern cl100k --out tokenizer.json\n"
      "  brrr tokenize train poems.txt --kind char --out poems.json");
  command->callback([options] { run_train(*options); });
}

// ---- encode, decode, count -----------------------------------------------------------------------

void add_common(CLI::App* command, CommonOptions& options) {
  command
      ->add_option("-t,--tokenizer", options.tokenizer,
                   "A tokenizer's file, or a folder that has one")
      ->required();
  command->add_option("--pattern", options.pattern,
                      "For files that do not say it: gpt2, cl100k, or a PCRE2 pattern");
  command->add_flag("--json", options.json, "Print JSON");
}

void add_specials(CLI::App* command, CommonOptions& options) {
  command->add_flag("--specials", options.specials,
                    "Read <|endoftext|> and its like in the text as special tokens");
}

// A token as a person can read it: text where it is text, else its bytes in hexadecimal.
std::string visible(std::string_view bytes) {
  if (text::is_utf8(bytes)) return nlohmann::json(bytes).dump();
  std::string hex;
  for (char byte : bytes) hex += fmt::format("{:02x} ", static_cast<unsigned char>(byte));
  hex.pop_back();
  return hex;
}

struct EncodeCommand : CommonOptions {
  std::vector<std::string> texts;
  std::string file;
  bool show = false;
};

void print_ids(const Tokenizer& tokenizer, const EncodeCommand& command,
               std::span<const int32_t> ids) {
  std::string lines;
  for (int32_t id : ids) {
    if (command.show) {
      lines += fmt::format("{:>7}  {}\n", id, visible(tokenizer.bytes_of(id)));
    } else {
      lines += fmt::format("{} ", id);
    }
  }
  std::fwrite(lines.data(), 1, lines.size(), stdout);
}

void run_encode(const EncodeCommand& command) {
  check(command.texts.empty() != command.file.empty(),
        "give either a text or --file, not both: brrr tokenize encode -t gpt2 \"some text\"");
  const auto tokenizer = load(command);
  std::vector<int32_t> all;
  const auto take = [&](std::span<const int32_t> ids) {
    if (command.json) {
      all.insert(all.end(), ids.begin(), ids.end());
    } else {
      print_ids(*tokenizer, command, ids);
    }
  };
  for (const std::string& text : command.texts) take(tokenizer->encode(text, specials(command)));
  if (!command.file.empty()) encode_source(*tokenizer, command.file, command, take);
  if (!command.json) {
    if (!command.show) std::puts("");
    return;
  }
  nlohmann::json result = facts(*tokenizer);
  result["ids"] = all;
  std::puts(result.dump().c_str());
}

void add_encode(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("encode", "Turn text into ids");
  const auto options = std::make_shared<EncodeCommand>();
  command->add_option("text", options->texts, "Text; several are encoded one after another");
  command->add_option("--file", options->file,
                      "Read the text from a file, or - for standard input");
  command->add_flag("--show", options->show, "One token a line, with its text");
  add_common(command, *options);
  add_specials(command, *options);
  command->footer(
      "Examples:\n"
      "  brrr tokenize encode -t gpt2/tokenizer.json \"Hello world\"\n"
      "  brrr tokenize encode -t cl100k_base.tiktoken --show \"naïve 12345\"\n"
      "  brrr tokenize encode -t book.json --file book.txt > ids.txt");
  command->callback([options] { run_encode(*options); });
}

struct DecodeCommand : CommonOptions {
  std::vector<int32_t> ids;
};

void run_decode(const DecodeCommand& command) {
  const auto tokenizer = load(command);
  std::vector<int32_t> ids = command.ids;
  if (ids.empty()) {
    for (int32_t id = 0; std::cin >> id;) ids.push_back(id);
    check(std::cin.eof(), "standard input has something that is no id after ", ids.size(),
          " ids; ids are numbers with spaces between");
  }
  const std::string bytes = tokenizer->decode(ids);
  if (!command.json) {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return;
  }
  nlohmann::json result = facts(*tokenizer);
  result["is_utf8"] = text::is_utf8(bytes);
  result["bytes"] = bytes.size();
  result["text"] = bytes;
  // JSON has text only; what is no text shows as U+FFFD.
  std::puts(result.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void add_decode(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("decode", "Turn ids into text");
  const auto options = std::make_shared<DecodeCommand>();
  command->add_option("ids", options->ids, "Ids; from standard input when none are given");
  add_common(command, *options);
  command->footer(
      "Examples:\n"
      "  brrr tokenize decode -t gpt2/tokenizer.json 15496 995\n"
      "  brrr tokenize decode -t book.json < ids.txt");
  command->callback([options] { run_decode(*options); });
}

struct CountCommand : CommonOptions {
  std::vector<std::string> files;
  int threads = 0;
};

struct FileCount {
  std::string file;
  int64_t bytes = 0, tokens = 0;
  double seconds = 0;
};

FileCount count_file(const Tokenizer& tokenizer, const std::string& file,
                     const CountCommand& command) {
  FileCount count{.file = file};
  const auto start = std::chrono::steady_clock::now();
  count.bytes = encode_source(tokenizer, file, command, [&](std::span<const int32_t> ids) {
    count.tokens += static_cast<int64_t>(ids.size());
  });
  count.seconds = seconds_since(start);
  return count;
}

std::string per_token(const FileCount& count) {
  if (count.tokens == 0) return "";
  return fmt::format("{:.3f}",
                     static_cast<double>(count.bytes) / static_cast<double>(count.tokens));
}

void print_counts(const Tokenizer& tokenizer, const std::vector<FileCount>& counts) {
  std::printf("%s\n\n", tokenizer.description().c_str());
  report::Table table({"file", "bytes", "tokens", "bytes/token", "speed"});
  for (const FileCount& count : counts) {
    table.row(count.file, with_commas(count.bytes), with_commas(count.tokens), per_token(count),
              to_text(Bytes(count.bytes) / Seconds(std::max(count.seconds, 1e-9))));
  }
  std::fputs(table.text().c_str(), stdout);
}

void run_count(const CountCommand& command) {
  if (command.threads > 0) set_num_threads(command.threads);
  const auto tokenizer = load(command);
  std::vector<FileCount> counts;
  for (const std::string& file : command.files)
    counts.push_back(count_file(*tokenizer, file, command));
  if (!command.json) {
    print_counts(*tokenizer, counts);
    return;
  }
  nlohmann::json result = facts(*tokenizer);
  for (const FileCount& count : counts) {
    result["files"].push_back({{"file", count.file},
                               {"bytes", count.bytes},
                               {"tokens", count.tokens},
                               {"seconds", count.seconds}});
  }
  std::puts(result.dump(1).c_str());
}

void add_count(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("count", "Count the tokens of files of any size");
  const auto options = std::make_shared<CountCommand>();
  command->add_option("files", options->files, "Text files, or - for standard input")->required();
  command->add_option("--threads", options->threads, "Threads to use; all cores by default")
      ->check(CLI::Range(1, 1024));
  add_common(command, *options);
  add_specials(command, *options);
  command->footer(
      "Examples:\n"
      "  brrr tokenize count -t gpt2/tokenizer.json book.txt\n"
      "  cat *.txt | brrr tokenize count -t book.json -");
  command->callback([options] { run_count(*options); });
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("tokenize", "Make tokenizers; turn text into ids and back; count tokens");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  brrr tokenize train book.txt --vocab 8192 --out book.json\n"
      "  brrr tokenize encode -t book.json \"Hello world\"\n"
      "  brrr tokenize decode -t book.json 15496 995\n"
      "  brrr tokenize count -t book.json book.txt");
  add_train_tokenizer(*command);
  add_encode(*command);
  add_decode(*command);
  add_count(*command);
}

}  // namespace brrr::cli
