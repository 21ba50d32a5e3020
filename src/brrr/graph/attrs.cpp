#include "brrr/graph/attrs.h"

#include <algorithm>

namespace brrr {

bool Attrs::operator==(const Attrs& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string to_text(const Attrs& attrs) {
  std::string out;
  for (const Attr& entry : attrs) {
    if (!out.empty()) out += ' ';
    out += std::string(entry.name) + "=";
    std::visit([&](const auto& value) { append_text(out, value); }, entry.value);
  }
  return out;
}

}  // namespace brrr
