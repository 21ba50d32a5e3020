#include "brrr/data/prepare.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "brrr/base/error.h"
#include "brrr/base/philox.h"
#include "brrr/base/thread_pool.h"
#include "brrr/data/token_set.h"
#include "brrr/io/mapped_file.h"

namespace brrr {
namespace {

constexpr uint32_t kSplitting = stream_id("data split");
constexpr size_t kPieceBytes = size_t{1} << 18;  // what one call of the tokenizer gets
constexpr size_t kPiecesAtOnce = 64;             // encoded side by side, then written in order

// A part of a document on its way to a split.
struct Piece {
  std::string_view text;
  bool begins_document = false;
  bool to_validation = false;
};

class Preparer {
 public:
  Preparer(const TokenEncoder& encoder, const PrepareOptions& options)
      : encoder_(encoder), options_(options) {
    train_ = make_writer("train");
    validation_ = make_writer("validation");
  }

  void add_file(const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    check(!text.empty(), file.name(), ": the file is empty");
    text_bytes_ += static_cast<int64_t>(text.size());
    file_ = &file;
    if (options_.separator.empty()) {
      add_whole(text);
    } else {
      add_separated(text);
    }
    encode_waiting();  // pieces point into this file
    file_ = nullptr;
  }

  Prepared finish() {
    check(has_train_, "prepare: no training text is left; lower the validation part of ",
          options_.validation_part, " or give more text");
    Prepared prepared{
        .train = train_->finish(), .validation = {}, .text_bytes = Bytes(text_bytes_)};
    if (has_validation_) prepared.validation = validation_->finish();
    return prepared;
  }

 private:
  std::unique_ptr<ShardWriter> make_writer(const std::string& split) const {
    return std::make_unique<ShardWriter>(
        ShardWriterOptions{.folder = options_.folder,
                           .split = split,
                           .vocab_size = encoder_.vocab_size,
                           .end_of_text = encoder_.end_of_text.value_or(-1),
                           .tokenizer_hash = encoder_.hash,
                           .shard_bytes = options_.shard_bytes});
  }

  void add_whole(std::string_view text) {
    const auto train_bytes = static_cast<size_t>(
        std::llround((1 - options_.validation_part) * static_cast<double>(text.size())));
    const size_t cut =
        train_bytes == text.size() ? train_bytes : find_cut(text.substr(0, train_bytes));
    add_document(text.substr(0, cut), false);
    add_document(text.substr(cut), true);
  }

  void add_separated(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(options_.separator), text.size());
      add_document(text.substr(0, end), is_validation(document_number_));
      text.remove_prefix(std::min(end + options_.separator.size(), text.size()));
    }
  }

  bool is_validation(uint64_t document) const {
    const PhiloxBlock block =
        philox4x32(philox_counter(document, kSplitting), philox_key(options_.seed));
    return uniform01_double(block.v[0], block.v[1]) < options_.validation_part;
  }

  void add_document(std::string_view text, bool to_validation) {
    if (text.find_first_not_of(" \t\r\n") == text.npos) return;  // nothing but space between marks
    ++document_number_;
    bool begins = true;
    while (!text.empty()) {
      const size_t size =
          text.size() <= kPieceBytes ? text.size() : find_cut(text.substr(0, kPieceBytes));
      waiting_.push_back({text.substr(0, size), begins, to_validation});
      text.remove_prefix(size);
      begins = false;
      if (waiting_.size() == kPiecesAtOnce) encode_waiting();
    }
  }

  void encode_waiting() {
    std::vector<std::vector<int32_t>> tokens(waiting_.size());
    if (!waiting_.empty()) {
      thread_pool().for_each_piece(static_cast<int64_t>(waiting_.size()), [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        tokens[at] = encoder_.encode(waiting_[at].text);
      });
    }
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const bool to_validation = waiting_[i].to_validation;
      ShardWriter& writer = to_validation ? *validation_ : *train_;
      (to_validation ? has_validation_ : has_train_) = true;
      if (waiting_[i].begins_document) writer.begin_document();
      writer.append(tokens[i]);
    }
    waiting_.clear();
    if (file_) file_->forget();  // a text larger than memory passes through in pieces
  }

  const TokenEncoder& encoder_;
  const PrepareOptions& options_;
  std::unique_ptr<ShardWriter> train_, validation_;
  bool has_train_ = false, has_validation_ = false;
  const MappedFile* file_ = nullptr;  // being read
  std::vector<Piece> waiting_;
  uint64_t document_number_ = 0;
  int64_t text_bytes_ = 0;
};

// Shards of an older run would be mixed up with the new ones.
void clear_folder(const PrepareOptions& options) {
  if (!std::filesystem::exists(options.folder)) return;
  for (const std::string_view split : {"train", "validation"}) {
    for (const std::filesystem::path& old : find_shards(options.folder, split)) {
      check(options.replace, old.string(),
            ": stands there already; choose another folder, or replace it with --force");
      std::filesystem::remove(old);
    }
  }
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

size_t find_cut(std::string_view text) {
  for (size_t i = text.size(); i-- > 1;) {
    if (i + 1 < text.size() && text[i] == ' ' && is_letter(text[i - 1]) && is_letter(text[i + 1]))
      return i;
  }
  const size_t line = text.rfind('\n');
  if (line != text.npos) return line + 1;
  size_t end = text.size();
  // Go back over continuation bytes (10xxxxxx) to the start of the last character, unless it is whole.
  size_t start = end;
  while (start > 0 && end - start < 4) {
    const auto byte = static_cast<unsigned char>(text[--start]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    if (start + length > end && start > 0) end = start;
    break;
  }
  return end;
}

Prepared prepare_tokens(const std::vector<std::filesystem::path>& files,
                        const TokenEncoder& encoder, const PrepareOptions& options) {
  check(!files.empty(), "prepare: no files");
  check(options.validation_part >= 0 && options.validation_part < 1,
        "prepare: a validation part of ", options.validation_part,
        "; it must be at least 0 and below 1");
  // Before anything is touched: a name that was mistyped costs nothing.
  for (const std::filesystem::path& file : files) MappedFile{file};
  clear_folder(options);
  Preparer preparer(encoder, options);
  for (const std::filesystem::path& file : files) preparer.add_file(file);
  return preparer.finish();
}

}  // namespace brrr
