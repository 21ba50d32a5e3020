// The corpus that is always there: short stories made by a grammar of our own, and the judge of texts
// that claim to be such a story.
//
//   story(0, {.seed = 1})     "Once upon a time there was a brave fox named Mia. She loved to draw ..."
//   parse_story(text)         whether the grammar makes this text, and if not, where and why
//
// A story is one line of ASCII, 60 to 90 words long. It is a pure function of seed, split and index, so
// nothing is stored and any part of the corpus can be made anywhere, in any order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brrr {

// A text belongs to one split by its own hash, so no story is ever in both, whatever the seeds.
enum class StorySplit : uint8_t { train, validation };
StorySplit split_of_story(std::string_view text);

struct StoryOptions {
  uint64_t seed = 0;
  StorySplit split = StorySplit::train;
};

std::string story(int64_t index, const StoryOptions& options = {});

struct StoryVerdict {
  bool parses = false;
  size_t position = 0;  // byte of the text where no story goes on as it does
  std::string reason;   // what a story would have there; empty when it parses
  explicit operator bool() const { return parses; }
};
// White space around the story is no part of it.
StoryVerdict parse_story(std::string_view text);

}  // namespace brrr
