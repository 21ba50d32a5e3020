#include "brrr/data/stories.h"

#include <array>

#include "brrr/base/error.h"
#include "brrr/base/philox.h"
#include "brrr/data/story_grammar.h"

namespace brrr {
namespace {

using namespace story_grammar;  // NOLINT: this file is about nothing else

constexpr uint32_t kStories = stream_id("stories");
constexpr uint64_t kValidationPart = 16;  // one text in sixteen is a validation story
constexpr uint32_t kMaxBlocks =
    64;  // of random numbers a story; one has 4 choices, a story about 30

// Choices of one story: word after word of the Philox blocks that belong to (seed, index, attempt).
class Choices {
 public:
  Choices(uint64_t seed, uint64_t index, uint32_t attempt)
      : key_(philox_key(seed)), index_(index), next_block_(attempt * kMaxBlocks) {}

  // Uniform in [0, count): the high part of a product, off by less than count / 2^32.
  int below(size_t count) {
    if (used_ == 4) {
      block_ = philox4x32(philox_counter(index_, kStories, next_block_++), key_);
      used_ = 0;
    }
    return static_cast<int>((uint64_t{block_.v[used_++]} * count) >> 32);
  }

 private:
  PhiloxKey key_;
  uint64_t index_;
  uint32_t next_block_;
  PhiloxBlock block_ = {};
  int used_ = 4;
};

class Generator {
 public:
  explicit Generator(Choices choices)
      : choices_(choices), values_(grammar_.variables.size(), kUnbound) {}

  std::string make() {
    write_choice(grammar_.start);
    return std::move(text_);
  }

 private:
  void write_choice(int choice) {
    const auto& alternatives = grammar_.choices[static_cast<size_t>(choice)];
    const int chosen = alternatives.size() == 1 ? 0 : choices_.below(alternatives.size());
    for (const Node& node : alternatives[static_cast<size_t>(chosen)]) {
      if (node.kind == NodeKind::text) {
        text_ += node.text;
      } else if (node.kind == NodeKind::choice) {
        write_choice(node.choice);
      } else {
        text_ += text_of(grammar_, node.variable, node.form, value_of(node.variable));
      }
    }
  }

  // The value of a variable, chosen at its first mention among those that the constraints leave.
  int value_of(int variable) {
    int& value = values_[static_cast<size_t>(variable)];
    if (value != kUnbound) return value;
    const auto entries =
        static_cast<int>(grammar_.variables[static_cast<size_t>(variable)].entries.size());
    allowed_.clear();
    for (int entry = 0; entry < entries; ++entry) {
      if (is_allowed(grammar_, values_, variable, entry)) allowed_.push_back(entry);
    }
    invariant(!allowed_.empty(), "stories: nothing is left for a variable");
    value =
        allowed_[static_cast<size_t>(allowed_.size() == 1 ? 0 : choices_.below(allowed_.size()))];
    return value;
  }

  const Grammar& grammar_ = grammar();
  Choices choices_;
  Values values_;
  std::vector<int> allowed_;
  std::string text_;
};

}  // namespace

StorySplit split_of_story(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  // The low bits of FNV-1a depend on the low bits of letters alone; the high ones on everything.
  return (hash >> 32) % kValidationPart == 0 ? StorySplit::validation : StorySplit::train;
}

std::string story(int64_t index, const StoryOptions& options) {
  check(index >= 0, "story: index ", index, " is negative");
  for (uint32_t attempt = 0;; ++attempt) {
    std::string text =
        Generator(Choices(options.seed, static_cast<uint64_t>(index), attempt)).make();
    if (split_of_story(text) == options.split) return text;
  }
}

}  // namespace brrr
