// Text that is safe inside a page, whoever wrote it.
#pragma once

#include <string>
#include <string_view>

namespace brrr::report {

// For content and for attributes in double quotes. Bytes that no text may have become U+FFFD.
std::string html_escaped(std::string_view text);

// JSON inside <script type="application/json">: no "<" in it, so that nothing can end the element.
std::string script_json(std::string_view json);

}  // namespace brrr::report
