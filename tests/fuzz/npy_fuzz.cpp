// libFuzzer on the header of .npy files: it parses into sizes that lie inside the file, or throws Error.
// Each input is read as a file, and again as what follows the magic, so that the dictionary is reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "brrr/base/error.h"
#include "brrr/io/npy_header.h"

namespace {

void parse(std::string_view file) {
  try {
    const brrr::NpyHeader header =
        brrr::parse_npy_header(std::as_bytes(std::span(file)), "fuzzed.npy");
    const auto room = static_cast<int64_t>(file.size()) - header.data_offset;
    if (header.count < 0 || room < 0 || header.count > room / header.item_bytes) std::abort();
  } catch (const brrr::Error&) {  // what a damaged header should do
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  parse(input);
  const size_t brace = input.rfind('}');
  const size_t text_bytes = brace == input.npos ? size : brace + 1;  // then elements
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text_bytes & 0xFF);
  file += static_cast<char>((text_bytes >> 8) & 0xFF);
  parse(file.append(input));
  return 0;
}
