#include "brrr/base/nearest_word.h"

#include <algorithm>
#include <vector>

namespace brrr {

// d[i][j] = edits between the first i letters of a and the first j of b (Damerau-Levenshtein, adjacent
// swaps only). Three rows are enough.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int exchange = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, exchange});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  int best = std::max<int>(2, static_cast<int>(word.size()) / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace brrr
