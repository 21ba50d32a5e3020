#include "brrr/text/count_words.h"

#include "brrr/base/thread_pool.h"
#include "brrr/text/for_each_word.h"

namespace brrr::text {
namespace {

std::vector<SpecialToken> as_specials(std::span<const std::string> texts) {
  std::vector<SpecialToken> specials;
  for (const std::string& text : texts)
    specials.push_back({text, static_cast<int32_t>(specials.size())});
  return specials;
}

}  // namespace

WordCounter::WordCounter(const std::string& pattern, std::span<const std::string> boundaries)
    : splitter_(make_splitter(pattern)), boundaries_(as_specials(boundaries)) {}

void WordCounter::add_documents(std::span<const std::string_view> documents) {
  std::vector<Piece> all;
  for (std::string_view document : documents) {
    const auto pieces = cut_into_pieces(
        document, TextEnd::here, boundaries_,
        [&](std::string_view text, size_t from) { return splitter_->find_cut(text, from); });
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  count(all);
}

size_t WordCounter::add_part(std::string_view text, TextEnd end) {
  const auto pieces = cut_into_pieces(
      text, end, boundaries_,
      [&](std::string_view part, size_t from) { return splitter_->find_cut(part, from); });
  const size_t taken = count(pieces);
  return static_cast<size_t>(pieces.back().text.data() - text.data()) + taken;
}

size_t WordCounter::count(const std::vector<Piece>& pieces) {
  const std::vector<size_t> groups = group_pieces(pieces);
  std::vector<size_t> taken(groups.size() - 1);
  thread_pool().for_each_piece(static_cast<int64_t>(taken.size()), [&](int64_t number) {
    const auto group = static_cast<size_t>(number);
    std::unique_ptr<WordMap<int64_t>> table;
    {
      std::lock_guard lock(mutex_);
      if (tables_.empty()) tables_.push_back(std::make_unique<WordMap<int64_t>>());
      table = std::move(tables_.back());
      tables_.pop_back();
    }
    for (size_t i = groups[group]; i < groups[group + 1]; ++i) {
      taken[group] = for_each_word(*splitter_, pieces[i].text, pieces[i].end, [&](auto word) {
        for (; word.size() > kMaxWordBytes; word.remove_prefix(kMaxWordBytes))
          ++table->find_or_add(word.substr(0, kMaxWordBytes));
        ++table->find_or_add(word);
      });
    }
    std::lock_guard lock(mutex_);
    tables_.push_back(std::move(table));
  });
  return taken.empty() ? 0 : taken.back();
}

WordMap<int64_t> WordCounter::take_counts() {
  WordMap<int64_t> sums;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (i == 0) {
      sums = std::move(*tables_[0]);
    } else {
      tables_[i]->for_each(
          [&](std::string_view word, int64_t count) { sums.find_or_add(word) += count; });
    }
  }
  tables_.clear();
  return sums;
}

}  // namespace brrr::text
