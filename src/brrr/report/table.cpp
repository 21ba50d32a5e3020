#include "brrr/report/table.h"

#include <algorithm>
#include <cctype>

namespace brrr {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kMargin = "  ";

bool starts_like_number(std::string_view cell) {
  for (std::string_view sign : {"-", "+", "~", "±", "."}) {
    if (cell.starts_with(sign)) cell.remove_prefix(sign.size());
  }
  return !cell.empty() && std::isdigit(static_cast<unsigned char>(cell[0])) != 0;
}

struct Column {
  int width = 0;
  bool right = false;
};

std::vector<Column> measure_columns(const std::vector<std::string>& headers,
                                    const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns(headers.size());
  for (size_t c = 0; c < headers.size(); ++c) {
    Column& column = columns[c];
    column.width = display_width(headers[c]);
    int numbers = 0, texts = 0;
    for (const auto& row : rows) {
      if (row.empty() || row[c].empty()) continue;
      column.width = std::max(column.width, display_width(row[c]));
      ++(starts_like_number(row[c]) ? numbers : texts);
    }
    column.right = c > 0 && numbers > texts;
  }
  return columns;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<Column>& columns) {
  std::string line(kMargin);
  for (size_t c = 0; c < cells.size(); ++c) {
    const auto padding = static_cast<size_t>(columns[c].width - display_width(cells[c]));
    if (c > 0) line += kGap;
    if (columns[c].right) line.append(padding, ' ');
    line += cells[c];
    if (!columns[c].right) line.append(padding, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
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

std::string Table::text() const {
  const std::vector<Column> columns = measure_columns(headers_, rows_);
  std::string out;
  if (!title_.empty()) out += title_ + "\n";
  const bool named =
      std::any_of(headers_.begin(), headers_.end(), [](const auto& h) { return !h.empty(); });
  if (named) out += line_of(headers_, columns) + rule_of(columns);
  for (const auto& row : rows_) out += row.empty() ? rule_of(columns) : line_of(row, columns);
  return out;
}

}  // namespace brrr
