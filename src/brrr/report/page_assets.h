// The look of a page and the script that draws its charts, both without anything from outside the page.
#pragma once

#include <string_view>

namespace brrr {

std::string_view page_style();    // for <style>
std::string_view chart_script();  // draws what <script id="charts" type="application/json"> holds

}  // namespace brrr
