#include "brrr/report/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <atomic>

#include "brrr/report/table.h"

namespace brrr::report {

namespace {
std::atomic<int> set_columns = 0;
}  // namespace

void set_terminal_columns(int64_t columns) {
  constexpr int64_t kFewest = 20, kMost = 10'000;  // what is believed
  set_columns = columns >= kFewest && columns <= kMost ? static_cast<int>(columns) : 0;
}

int terminal_columns(std::FILE* out, int otherwise) {
  if (const int columns = set_columns; columns > 0) return columns;
  winsize size{};
  const bool known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : otherwise;
}

std::vector<std::string> wrap_words(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (display_width(line) + 1 + display_width(word) <= width) {
      line.append(" ").append(word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

std::string wrapped_text(std::string_view first, std::string_view text, int columns) {
  const int indent = display_width(first);
  std::string out(first);
  bool is_first = true;
  for (const std::string& line : wrap_words(text, columns - indent)) {
    if (!is_first) out.append(static_cast<size_t>(indent), ' ');
    out.append(line).append("\n");
    is_first = false;
  }
  return out;
}

}  // namespace brrr::report
