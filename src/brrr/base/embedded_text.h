// Text files of the source tree that are compiled into the library: tables (.toml) and what pages consist of (.css, .js).
// So an installed library needs no files beside it. cmake/BrrrEmbed.cmake puts them in.
#pragma once

#include <string_view>

namespace brrr {

// By its path below src/brrr: "hardware/hardware.toml". A path that is not there is an error of ours.
std::string_view embedded_text(std::string_view path);

}  // namespace brrr
