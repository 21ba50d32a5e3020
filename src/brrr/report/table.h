// Tables for terminals: columns as wide as their widest cell, numbers to the right.
//   Table table({"dtype", "bytes", "largest"});
//   table.row(DType::bf16, 2, "3.39e38");
//   std::fputs(table.text().c_str(), stdout);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "brrr/base/error.h"

namespace brrr::report {

class Table {
 public:
  explicit Table(std::vector<std::string> headers, std::string title = "");

  // One cell for each header: text, numbers, and anything that has a to_text.
  template <typename... Cells>
  Table& row(const Cells&... cells) {
    return add_row({join_text(cells)...});
  }
  Table& add_row(std::vector<std::string> cells);
  Table& rule();  // a line before the next row

  // The first column names the rows and is set to the left. Others are set to the right when most
  // of their cells are a number, with or without a unit, and none is a sentence.
  std::string text() const;
  // At most `columns` wide where that can be: columns of text are broken between words, the widest first.
  std::string text(int columns) const;

 private:
  std::vector<std::string> headers_;
  std::string title_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

// Columns that a text takes, each UTF-8 code point one: "µs" is 2, not 3.
int display_width(std::string_view text);

}  // namespace brrr::report
