#include "brrr/infer/character_stream.h"

#include "brrr/text/utf8.h"

namespace brrr::infer {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::string CharacterStream::add(std::string_view bytes) {
  waiting_ += bytes;
  std::string shown;
  std::string_view rest = waiting_;
  while (!rest.empty()) {
    const text::Utf8Char next = text::decode_utf8(rest);
    if (next.state == text::Utf8Char::State::truncated) break;
    if (next.state == text::Utf8Char::State::whole) {
      shown += rest.substr(0, next.length);
    } else {
      shown += kReplacement;
    }
    rest.remove_prefix(next.length);
  }
  waiting_ = std::string(rest);
  return shown;
}

std::string CharacterStream::finish() {
  if (waiting_.empty()) return {};
  waiting_.clear();
  return kReplacement;
}

}  // namespace brrr::infer
