# Text files inside the library, which runs on machines that have no copy of the source tree. Used for the headers of
# generated GPU kernels (BrrrRtcHeaders.cmake), and for tables and parts of pages (base/embedded_text.h).

# Rows of C++, {"name", text} for each file below src/, into `out`. A changed file configures anew.
function(brrr_text_rows out prefix)
  set(rows "")
  foreach(name IN LISTS ARGN)
    set(path "${PROJECT_SOURCE_DIR}/src/${prefix}${name}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(READ "${path}" text)
    string(APPEND rows "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  set(${out} "${rows}" PARENT_SCOPE)
endfunction()

# embedded_text.cpp: every .toml, .css and .js of src/brrr, by its path below that.
function(brrr_add_embedded_text target)
  set(folder "${PROJECT_SOURCE_DIR}/src/brrr")
  file(GLOB_RECURSE names CONFIGURE_DEPENDS RELATIVE "${folder}"
       "${folder}/*.toml" "${folder}/*.css" "${folder}/*.js")
  brrr_text_rows(rows "brrr/" ${names})
  set(source "${PROJECT_BINARY_DIR}/embedded_text.cpp")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [[
// Made by cmake/BrrrEmbed.cmake.
#include "brrr/base/embedded_text.h"

#include "brrr/base/error.h"

namespace brrr {
namespace {
struct File {
  std::string_view path, text;
};
constexpr File kFiles[] = {
@rows@};
}  // namespace

std::string_view embedded_text(std::string_view path) {
  for (const File& file : kFiles)
    if (file.path == path) return file.text;
  fail("no text file \"", path, "\" is compiled in; it must be in src/brrr when CMake configures");
}

}  // namespace brrr
]])
  target_sources(${target} PRIVATE "${source}")
endfunction()
