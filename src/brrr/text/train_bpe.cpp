// Every step merges the pair that stands in the words most often (adjacent places, each word as often as
// the text has it), of equals the one with the smaller left, then the smaller right id. A merge changes
// only the counts of its neighbours, so counts are kept up to date and a queue holds what they were when
// they last rose: an entry that turns out to be too high goes back with the count of today.
//
// The result depends on sums alone, not on the order of words, so any number of threads gives the same.
// It is that of Hugging Face's BpeTrainer with the byte-level alphabet.
#include "brrr/text/train_bpe.h"

#include <queue>

#include "brrr/base/error.h"
#include "brrr/text/byte_level.h"
#include "brrr/text/count_words.h"
#include "brrr/text/pair_map.h"
#include "brrr/text/token_index.h"

namespace brrr::text {
namespace {

class MergeLearner {
 public:
  MergeLearner(const WordMap<int64_t>& counts, std::vector<std::string> alphabet)
      : tokens_(std::move(alphabet)) {
    const std::array<int32_t, 256> byte_ids = TokenIndex(tokens_).byte_ids();
    counts.for_each([&](std::string_view word, int64_t count) {
      if (word.size() < 2) return;
      words_.push_back({symbols_.size(), static_cast<uint32_t>(word.size()), count});
      for (char byte : word) symbols_.push_back(byte_ids[static_cast<unsigned char>(byte)]);
    });
    check(words_.size() < UINT32_MAX, "the text has ", words_.size(),
          " different words; train on less");
    count_pairs();
  }

  // Merges until there are `limit` tokens, or no pair stands `min_count` times.
  void learn(size_t limit, int64_t min_count) {
    while (tokens_.size() < limit && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const uint32_t index = *pair_index_.find(best.key);
      const int64_t count = pairs_[index].count;
      if (count != best.count) {
        if (count < best.count && count > 0) queue_.push({count, best.key});
        continue;
      }
      if (count < min_count) return;
      merge(index);
    }
  }

  std::vector<std::string> take_tokens() { return std::move(tokens_); }
  std::vector<Merge> take_merges() { return std::move(merges_); }

 private:
  struct Word {
    size_t begin;
    uint32_t size;
    int64_t count;
  };
  struct Pair {
    uint64_t key = 0;
    int64_t count = 0;
    std::vector<uint32_t> words;  // that have had it; a word may stand there twice or have lost it
    bool raised = false;          // in the current step
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    bool operator<(const Candidate& other) const {  // the queue's top is the largest
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return pair_key(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
  }

  void count_pairs() {
    for (size_t i = 0; i < words_.size(); ++i) {
      const Word& word = words_[i];
      for (size_t at = word.begin; at + 1 < word.begin + word.size; ++at)
        raise(symbols_[at], symbols_[at + 1], static_cast<uint32_t>(i));
    }
    queue_raised();
  }

  void raise(int32_t left, int32_t right, uint32_t word) {
    const uint64_t key = key_of(left, right);
    const uint32_t index = pair_index_.find_or_add(key, static_cast<uint32_t>(pairs_.size()));
    if (index == pairs_.size()) pairs_.push_back({.key = key});
    Pair& pair = pairs_[index];
    pair.count += words_[word].count;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    if (!pair.raised) {
      pair.raised = true;
      raised_.push_back(index);
    }
  }

  void lower(int32_t left, int32_t right, uint32_t word) {
    pairs_[*pair_index_.find(key_of(left, right))].count -= words_[word].count;
  }

  void queue_raised() {
    for (uint32_t index : raised_) {
      pairs_[index].raised = false;
      if (pairs_[index].count > 0) queue_.push({pairs_[index].count, pairs_[index].key});
    }
    raised_.clear();
  }

  void merge(uint32_t pair_index) {
    const uint64_t key = pairs_[pair_index].key;
    const Merge merge{static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & UINT32_MAX)};
    const int32_t merged = token_of(merge);
    merges_.push_back(merge);
    const std::vector<uint32_t> words = std::move(pairs_[pair_index].words);
    pairs_[pair_index].words = {};
    for (uint32_t word : words) merge_in_word(word, merge, merged);
    pairs_[pair_index].count = 0;
    queue_raised();
  }

  // "abc" may be made of "ab" and "c", and later of "a" and "bc": one token, two merges.
  int32_t token_of(const Merge& merge) {
    std::string bytes =
        tokens_[static_cast<size_t>(merge.left)] + tokens_[static_cast<size_t>(merge.right)];
    const auto fresh = static_cast<int32_t>(tokens_.size());
    const int32_t id = made_.try_emplace(bytes, fresh).first->second;
    if (id == fresh) tokens_.push_back(std::move(bytes));
    return id;
  }

  // Rewrites the word in place, from left to right, and changes the counts of pairs beside the merge.
  void merge_in_word(uint32_t index, const Merge& merge, int32_t merged) {
    Word& word = words_[index];
    int32_t* const symbols = symbols_.data() + word.begin;
    uint32_t written = 0;
    for (uint32_t read = 0; read < word.size;) {
      const bool is_pair =
          symbols[read] == merge.left && read + 1 < word.size && symbols[read + 1] == merge.right;
      if (!is_pair) {
        symbols[written++] = symbols[read++];
        continue;
      }
      if (written > 0) {
        lower(symbols[written - 1], merge.left, index);
        raise(symbols[written - 1], merged, index);
      }
      if (read + 2 < word.size) {
        lower(merge.right, symbols[read + 2], index);
        raise(merged, symbols[read + 2], index);
      }
      symbols[written++] = merged;
      read += 2;
    }
    word.size = written;
  }

  std::vector<std::string> tokens_;
  std::vector<Merge> merges_;
  std::unordered_map<std::string, int32_t> made_;
  std::vector<int32_t> symbols_;  // of all words, one after another
  std::vector<Word> words_;
  PairMap<uint32_t> pair_index_;
  std::vector<Pair> pairs_;
  std::vector<uint32_t> raised_;
  std::priority_queue<Candidate> queue_;
};

void check_training(const BpeTraining& training) {
  const auto fewest = static_cast<int64_t>(256 + training.specials.size());
  check(training.vocab_size >= fewest && training.vocab_size <= kMaxIds, "a vocabulary of ",
        training.vocab_size, " ids; it must be between ", fewest,
        " (256 bytes and the special tokens) and ", kMaxIds);
  check(training.min_count >= 1, "min_count is ", training.min_count, "; it must be 1 or more");
  for (const std::string& special : training.specials)
    check(!special.empty(), "a special token without text");
}

TokenizerDefinition learn(WordCounter& counter, const BpeTraining& training) {
  const WordMap<int64_t> counts = counter.take_counts();
  std::vector<std::string> alphabet;
  for (uint8_t byte : byte_level_order()) alphabet.emplace_back(1, static_cast<char>(byte));
  MergeLearner learner(counts, std::move(alphabet));
  const size_t limit = static_cast<size_t>(training.vocab_size) - training.specials.size();
  learner.learn(limit, training.min_count);
  TokenizerDefinition definition{.kind = TokenizerKind::bpe,
                                 .tokens = learner.take_tokens(),
                                 .pattern = training.pattern,
                                 .merges = learner.take_merges()};
  for (const std::string& special : training.specials) add_special(definition, special);
  return definition;
}

}  // namespace

TokenizerDefinition train_bpe(std::span<const std::string_view> documents,
                              const BpeTraining& training) {
  check_training(training);
  WordCounter counter(training.pattern, training.specials);
  counter.add_documents(documents);
  return learn(counter, training);
}

TokenizerDefinition train_bpe_on_files(std::span<const std::string> paths,
                                       const BpeTraining& training, const StreamOptions& options) {
  check_training(training);
  check(!paths.empty(), "no files to train on");
  WordCounter counter(training.pattern, training.specials);
  for (const std::string& path : paths) {
    read_file_in_parts(
        path, [&](std::string_view text, TextEnd end) { return counter.add_part(text, end); },
        options);
  }
  return learn(counter, training);
}

}  // namespace brrr::text
