#include "brrr/data/token_set.h"

#include <algorithm>
#include <cmath>

#include "brrr/base/error.h"

namespace brrr {
namespace {

void check_row(const TokenSet& tokens) {
  for (size_t i = 0; i < tokens.ranges.size(); ++i) {
    const TokenFile& file = *tokens.ranges[i].file;
    const auto& shard = file.layout().shard;
    check(shard.has_value(), file.name(), ": not a shard made by `brrr data prepare`");
    const ShardHeader& first = *tokens.ranges[0].file->layout().shard;
    check(shard->shard_index == static_cast<int64_t>(i), file.name(), ": says that it is shard ",
          shard->shard_index, ", and stands in the place of shard ", i,
          "; a shard before it is missing");
    check(shard->tokenizer_hash == first.tokenizer_hash && shard->vocab_size == first.vocab_size,
          file.name(), ": made with tokenizer ", shard->tokenizer_hash,
          ", and the shards before it with ", first.tokenizer_hash,
          "; make them all again with one");
    const bool is_final = i + 1 == tokens.ranges.size();
    check(
        shard->is_last == is_final, file.name(),
        is_final
            ? ": not the last shard, but no other follows; were the rest deleted, or was "
              "preparing interrupted? Run `brrr data prepare` again"
            : ": says that it is the last shard, but others follow; delete those of an older run");
  }
}

}  // namespace

int64_t TokenSet::token_count() const {
  int64_t count = 0;
  for (const TokenRange& range : ranges) count += range.count;
  return count;
}

TokenSet whole_file(std::shared_ptr<const TokenFile> file) {
  const int64_t count = file->token_count();
  std::string name = file->name();
  return {.name = std::move(name), .ranges = {{std::move(file), 0, count}}};
}

std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder,
                                               std::string_view split) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(join_text(split, "-")) && name.ends_with(".tokens"))
      paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

TokenSet open_tokens(const std::filesystem::path& path, std::string_view split,
                     const TokenFileOptions& options) {
  check(std::filesystem::exists(path), path.string(), ": no such file or folder");
  if (!std::filesystem::is_directory(path)) return whole_file(TokenFile::open(path, options));
  TokenSet tokens{.name = join_text(path.string(), " (", split, ")"), .ranges = {}};
  for (const std::filesystem::path& shard : find_shards(path, split)) {
    auto file = TokenFile::open(shard, options);
    const int64_t count = file->token_count();
    tokens.ranges.push_back({std::move(file), 0, count});
  }
  check(!tokens.ranges.empty(), path.string(), ": holds no ", shard_file_name(split, 0),
        "; make it with `brrr data prepare`");
  check_row(tokens);
  return tokens;
}

TokenSplit split_tail(const TokenSet& tokens, double tail_part) {
  check(tail_part > 0 && tail_part < 1, "split_tail: a part of ", tail_part,
        "; it must lie between 0 and 1");
  const int64_t total = tokens.token_count();
  auto front_left =
      total - static_cast<int64_t>(std::llround(tail_part * static_cast<double>(total)));
  TokenSplit split{.front = {.name = tokens.name, .ranges = {}},
                   .tail = {.name = join_text(tokens.name, " (tail)"), .ranges = {}}};
  for (const TokenRange& range : tokens.ranges) {
    int64_t front = std::min(front_left, range.count);
    if (front > 0 && front < range.count) {
      const int64_t document = range.file->next_document(range.first + front);
      if (document < range.first + range.count) front = document - range.first;
    }
    front_left = std::max<int64_t>(0, front_left - front);
    if (front > 0) split.front.ranges.push_back({range.file, range.first, front});
    if (front < range.count)
      split.tail.ranges.push_back({range.file, range.first + front, range.count - front});
  }
  return split;
}

}  // namespace brrr
