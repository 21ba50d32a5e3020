#include "brrr/report/table.h"

#include <algorithm>
#include <cctype>

#include "brrr/report/terminal.h"

namespace brrr::report {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kMargin = "  ";

constexpr int kNarrowest = 10;  // of a column that is broken into lines

// "42 min 19 s" may be a number; "8 x 989.5 TFLOP/s x 0.5 x 7 d" is a formula, and text.
bool is_sentence(std::string_view cell) {
  constexpr auto kMostBlanks = 3;
  return std::count(cell.begin(), cell.end(), ' ') > kMostBlanks;
}

bool starts_like_number(std::string_view cell) {
  for (std::string_view sign : {"-", "+", "~", "±", "."}) {
    if (cell.starts_with(sign)) cell.remove_prefix(sign.size());
  }
  return !cell.empty() && std::isdigit(static_cast<unsigned char>(cell[0])) != 0;
}

struct Column {
  int width = 0, longest_word = 0;
  bool right = false;
};

int longest_word(std::string_view cell) {
  int longest = 0;
  for (const std::string& word : wrap_words(cell, 0))
    longest = std::max(longest, display_width(word));
  return longest;
}

std::vector<Column> measure_columns(const std::vector<std::string>& headers,
                                    const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns(headers.size());
  for (size_t c = 0; c < headers.size(); ++c) {
    Column& column = columns[c];
    column.width = display_width(headers[c]);
    column.longest_word = longest_word(headers[c]);
    int numbers = 0, texts = 0;
    bool has_sentence = false;
    for (const auto& row : rows) {
      if (row.empty() || row[c].empty()) continue;
      column.width = std::max(column.width, display_width(row[c]));
      column.longest_word = std::max(column.longest_word, longest_word(row[c]));
      has_sentence = has_sentence || is_sentence(row[c]);
      if (row[c] != "-") ++(starts_like_number(row[c]) ? numbers : texts);
    }
    column.right = c > 0 && numbers > texts && !has_sentence;
  }
  return columns;
}

int total_width(const std::vector<Column>& columns) {
  int width = display_width(kMargin) - display_width(kGap);
  for (const Column& column : columns) width += column.width + display_width(kGap);
  return width;
}

// Takes from the widest column of text, one by one, until the table fits or none has anything left to give.
void narrow(std::vector<Column>& columns, int room) {
  while (total_width(columns) > room) {
    Column* widest = nullptr;
    for (Column& column : columns) {
      const int least = std::max(kNarrowest, column.longest_word);
      if (!column.right && column.width > least && (!widest || column.width > widest->width))
        widest = &column;
    }
    if (!widest) return;
    --widest->width;
  }
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<Column>& columns) {
  std::string line(kMargin);
  for (size_t c = 0; c < cells.size(); ++c) {
    const auto padding =
        static_cast<size_t>(std::max(0, columns[c].width - display_width(cells[c])));
    if (c > 0) line += kGap;
    if (columns[c].right) line.append(padding, ' ');
    line += cells[c];
    if (!columns[c].right) line.append(padding, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// A row whose cells take several lines.
std::string lines_of(const std::vector<std::string>& cells, const std::vector<Column>& columns) {
  std::vector<std::vector<std::string>> parts;
  size_t height = 1;
  for (size_t c = 0; c < cells.size(); ++c) {
    const bool is_whole = columns[c].right || display_width(cells[c]) <= columns[c].width;
    parts.push_back(is_whole ? std::vector{cells[c]} : wrap_words(cells[c], columns[c].width));
    height = std::max(height, parts.back().size());
  }
  std::string out;
  for (size_t line = 0; line < height; ++line) {
    std::vector<std::string> row;
    for (const auto& part : parts) row.push_back(line < part.size() ? part[line] : "");
    out += line_of(row, columns);
  }
  return out;
}

std::string rule_of(const std::vector<Column>& columns) {
  std::string line(kMargin);
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) line += kGap;
    for (int i = 0; i < columns[c].width; ++i) line += "─";
  }
  return line + "\n";
}

}  // namespace

int display_width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;  // all but continuation bytes
  }));
}

Table::Table(std::vector<std::string> headers, std::string title)
    : headers_(std::move(headers)), title_(std::move(title)) {
  check(!headers_.empty(), "a table needs at least one column");
}

Table& Table::add_row(std::vector<std::string> cells) {
  check(cells.size() == headers_.size(), "a row of ", cells.size(),
        " cells does not fit a table of ", headers_.size(), " columns");
  rows_.push_back(std::move(cells));
  return *this;
}

Table& Table::rule() {
  rows_.emplace_back();
  return *this;
}

std::string Table::text() const { return text(0); }

std::string Table::text(int room) const {
  std::vector<Column> columns = measure_columns(headers_, rows_);
  if (room > 0) narrow(columns, room);
  std::string out;
  if (!title_.empty()) out += room > 0 ? wrapped_text("", title_, room) : title_ + "\n";
  const bool named =
      std::any_of(headers_.begin(), headers_.end(), [](const auto& h) { return !h.empty(); });
  if (named) out += lines_of(headers_, columns) + rule_of(columns);
  for (const auto& row : rows_) out += row.empty() ? rule_of(columns) : lines_of(row, columns);
  return out;
}

}  // namespace brrr::report
