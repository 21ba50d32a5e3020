// Text that grows token by token, shown by whole characters: a token may end inside one.
#pragma once

#include <string>
#include <string_view>

namespace brrr::infer {

class CharacterStream {
 public:
  // What can be shown now that these bytes have come: whole UTF-8 characters. Bytes that belong to none
  // become U+FFFD, so that a terminal never gets what it cannot show.
  std::string add(std::string_view bytes);
  // What is left at the end: the beginning of a character, as U+FFFD.
  std::string finish();

 private:
  std::string waiting_;  // the beginning of a character, at most 3 bytes
};

}  // namespace brrr::infer
