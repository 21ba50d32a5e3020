// How wide a terminal is, and text that fits it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace brrr::report {

// The width of all output, 20 to 10,000 columns, whatever the terminal says. Any other number: ask the terminal again.
void set_terminal_columns(int64_t columns);
// What was set, else the terminal's width, else `otherwise` (a pipe, a file).
int terminal_columns(std::FILE* out, int otherwise);

// Lines of at most `width` columns, broken between words; a longer word has a line of its own.
std::vector<std::string> wrap_words(std::string_view text, int width);
// The same as one text: `first` before the first line, blanks of its width before the others.
std::string wrapped_text(std::string_view first, std::string_view text, int columns);

}  // namespace brrr::report
