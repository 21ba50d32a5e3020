// libFuzzer on deflate: whatever the bytes, unpacking ends inside its bounds or throws Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/io/gzip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A header in front and room for a checksum behind, so that most inputs reach the stream itself.
  constexpr uint8_t kHeader[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
  std::vector<std::byte> file;
  for (uint8_t byte : kHeader) file.push_back(std::byte{byte});
  for (size_t i = 0; i < size; ++i) file.push_back(std::byte{data[i]});
  file.resize(file.size() + 8);
  using namespace brrr::literals;
  for (const auto& candidate :
       {std::span<const std::byte>(file), std::span<const std::byte>(file).subspan(10, size)}) {
    try {
      if (brrr::gunzip(candidate, "fuzzed.gz", 1_MiB).size() > 1U << 20) std::abort();
    } catch (const brrr::Error&) {  // what damaged files should do
    }
  }
  return 0;
}
