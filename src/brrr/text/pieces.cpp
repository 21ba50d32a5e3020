#include "brrr/text/pieces.h"

namespace brrr::text {
namespace {

// Small enough for two threads to end at the same time, large enough that starting costs nothing.
constexpr size_t kPieceBytes = 128 * 1024;

}  // namespace

std::vector<Piece> cut_into_pieces(std::string_view text, TextEnd end,
                                   const SpecialFinder& specials, const FindCut& find_cut) {
  std::vector<Piece> pieces;
  const auto add_stretch = [&](std::string_view stretch, TextEnd stretch_end, int32_t special) {
    while (stretch.size() > kPieceBytes) {
      const size_t cut = find_cut(stretch, kPieceBytes);
      if (cut >= stretch.size()) break;
      pieces.push_back({stretch.substr(0, cut), TextEnd::here, -1});
      stretch.remove_prefix(cut);
    }
    pieces.push_back({stretch, stretch_end, special});
  };
  for (size_t begin = 0;;) {
    // From here on a special token may begin that ends behind the text, and goes before any that
    // begins later.
    size_t decided = text.size();
    if (end == TextEnd::later) decided -= specials.undecided_suffix(text.substr(begin));
    const SpecialFinder::Found found = specials.find(text, begin);
    if (found.id < 0 || found.begin >= decided) {
      add_stretch(text.substr(begin, decided - begin), end, -1);
      return pieces;
    }
    add_stretch(text.substr(begin, found.begin - begin), TextEnd::here, found.id);
    begin = found.end;
  }
}

std::vector<size_t> group_pieces(const std::vector<Piece>& pieces) {
  std::vector<size_t> starts{0};
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    bytes += pieces[i].text.size();
    if (bytes >= kPieceBytes || i + 1 == pieces.size()) {
      starts.push_back(i + 1);
      bytes = 0;
    }
  }
  return starts;
}

}  // namespace brrr::text
