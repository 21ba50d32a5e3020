// libFuzzer on the header of .npy files: it parses into sizes that lie inside the file, or throws Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "brrr/base/error.h"
#include "brrr/io/npy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const brrr::NpyHeader header =
        brrr::parse_npy_header({reinterpret_cast<const std::byte*>(data), size}, "fuzzed.npy");
    const auto room = static_cast<int64_t>(size) - header.data_offset;
    if (header.count < 0 || room < 0 || header.count > room / header.item_bytes) std::abort();
  } catch (const brrr::Error&) {  // what a damaged header should do
  }
  return 0;
}
