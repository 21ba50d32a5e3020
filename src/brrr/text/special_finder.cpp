#include "brrr/text/special_finder.h"

#include <algorithm>

namespace brrr::text {

SpecialFinder::SpecialFinder(std::vector<SpecialToken> specials) : specials_(std::move(specials)) {
  std::sort(specials_.begin(), specials_.end(),
            [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
  for (const SpecialToken& special : specials_)
    begins_[static_cast<unsigned char>(special.text[0])] = true;
}

SpecialFinder::Found SpecialFinder::find(std::string_view text, size_t from) const {
  if (specials_.empty()) return {text.size(), text.size(), -1};
  for (size_t place = from; place < text.size(); ++place) {
    if (!begins_[static_cast<unsigned char>(text[place])]) continue;
    for (const SpecialToken& special : specials_) {
      if (text.compare(place, special.text.size(), special.text) == 0)
        return {place, place + special.text.size(), special.id};
    }
  }
  return {text.size(), text.size(), -1};
}

size_t SpecialFinder::undecided_suffix(std::string_view text) const {
  if (specials_.empty()) return 0;
  for (size_t size = std::min(text.size(), specials_[0].text.size() - 1); size > 0; --size) {
    const std::string_view suffix = text.substr(text.size() - size);
    for (const SpecialToken& special : specials_) {
      if (special.text.size() > size && special.text.starts_with(suffix)) return size;
    }
  }
  return 0;
}

}  // namespace brrr::text
