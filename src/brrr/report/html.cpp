#include "brrr/report/html.h"

namespace brrr::report {

std::string html_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        // Control characters besides tab and the ends of lines are no text in HTML.
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') {
          out += "\xEF\xBF\xBD";
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string script_json(std::string_view json) {
  std::string out;
  for (char c : json) {
    if (c == '<') {
      out += "\\u003c";  // "<" stands in strings only, where this means the same
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace brrr::report
