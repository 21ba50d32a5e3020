#include "brrr/data/idx_file.h"

#include <cstring>

#include "brrr/base/error.h"
#include "brrr/io/gzip.h"
#include "brrr/io/mapped_file.h"

namespace brrr {
namespace {

uint32_t load_big_endian(std::span<const std::byte> bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[offset + i]);
  return value;
}

// Two zeros, the type, the number of axes; then the size of each axis, highest byte first; then elements.
Tensor parse_idx(std::span<const std::byte> file, const std::string& name) {
  constexpr std::byte kUnsignedBytes{8};
  check(file.size() >= 4 && file[0] == std::byte{0} && file[1] == std::byte{0}, name,
        ": not an IDX file, which begins with two zeros");
  check(file[2] == kUnsignedBytes, name, ": the elements are of type ",
        std::to_integer<int>(file[2]), ", not 8, unsigned bytes");
  const auto rank = std::to_integer<size_t>(file[3]);
  check(rank >= 1 && rank <= 4 && file.size() >= 4 + 4 * rank, name, ": ", rank,
        " axes; 1 to 4 are read");
  Shape shape;
  int64_t count = 1;
  const auto elements = static_cast<int64_t>(file.size() - 4 - 4 * rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto size = static_cast<int64_t>(load_big_endian(file, 4 + 4 * axis));
    // Four sizes below 2^32 could overflow their product; no file is that large.
    check(size > 0 && size <= elements && count <= elements / size, name, ": its ", elements,
          " elements are fewer than its sizes say");
    count *= size;
    shape.push_back(size);
  }
  check(count == elements, name, ": ", elements, " elements, where its sizes say ", count);
  Tensor x = empty(shape, DType::u8);
  std::memcpy(x.storage().data(), file.data() + 4 + 4 * rank, static_cast<size_t>(count));
  return x;
}

}  // namespace

Tensor load_idx(const std::filesystem::path& path) {
  const MappedFile file(path);
  if (!is_gzip(file.bytes())) return parse_idx(file.bytes(), file.name());
  return parse_idx(gunzip(file.bytes(), file.name()), file.name());
}

}  // namespace brrr
