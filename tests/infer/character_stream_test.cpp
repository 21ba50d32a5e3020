#include "brrr/infer/character_stream.h"

#include <gtest/gtest.h>

#include "brrr/text/utf8.h"

namespace brrr {
namespace {

// Every cut of a text with characters of one to four bytes.
TEST(CharacterStream, ShowsWholeCharactersWhereverTheBytesAreCut) {
  const std::string text = "a\u00e9\u20ac\U0001F600z";
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      infer::CharacterStream stream;
      std::string shown;
      for (const std::string& part : {text.substr(0, i), text.substr(i, j - i), text.substr(j)}) {
        const std::string now = stream.add(part);
        EXPECT_TRUE(text::is_utf8(now)) << "cut at " << i << " and " << j;
        shown += now;
      }
      EXPECT_EQ(shown + stream.finish(), text);
    }
  }
}

TEST(CharacterStream, BytesOfNoCharacterAreShownAsSuch) {
  infer::CharacterStream stream;
  EXPECT_EQ(stream.add("a\xFF"
                       "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(stream.add("\xC3"), "");
  EXPECT_EQ(stream.add("x"), "\uFFFDx");
  EXPECT_EQ(stream.add("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace brrr
