#include "brrr/text/bpe_tokenizer.h"

#include "brrr/text/for_each_word.h"
#include "brrr/text/simple_tokenizers.h"

namespace brrr::text {

BpeTokenizer::BpeTokenizer(TokenizerDefinition definition)
    : Tokenizer(std::move(definition)),
      splitter_(make_splitter(this->definition().pattern)),
      index_(this->definition().tokens),
      merger_(this->definition(), index_) {}

std::vector<int32_t> BpeTokenizer::ids_of_word(std::string_view word) const {
  if (definition().whole_words_first) {
    const int32_t id = index_.find(word);
    if (id != TokenIndex::kNone) return {id};
  }
  return merger_.merge(word);
}

size_t BpeTokenizer::append_ids(std::string_view text, TextEnd end,
                                std::vector<int32_t>& ids) const {
  std::unique_ptr<WordCache> cache = caches_.take();
  const size_t bytes = for_each_word(*splitter_, text, end, [&](std::string_view word) {
    if (cache->append(word, ids)) return;
    const std::vector<int32_t> merged = ids_of_word(word);
    cache->remember(word, merged);
    ids.insert(ids.end(), merged.begin(), merged.end());
  });
  caches_.give_back(std::move(cache));
  return bytes;
}

size_t BpeTokenizer::find_cut(std::string_view text, size_t from) const {
  return splitter_->find_cut(text, from);
}

std::unique_ptr<Tokenizer> make_tokenizer(TokenizerDefinition definition) {
  check_definition(definition);
  switch (definition.kind) {
    case TokenizerKind::bytes: return std::make_unique<ByteTokenizer>(std::move(definition));
    case TokenizerKind::characters: return std::make_unique<CharTokenizer>(std::move(definition));
    case TokenizerKind::bpe: break;
  }
  return std::make_unique<BpeTokenizer>(std::move(definition));
}

}  // namespace brrr::text
