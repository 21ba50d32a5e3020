// The header of NumPy's .npy files, versions 1 to 3: a magic, a length, and a Python dictionary
//   {'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }
// Source: numpy.lib.format. Only this one dictionary is read, not Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brrr {

struct NpyHeader {
  char kind = 0;       // 'f', 'i', 'u' or 'b'
  int item_bytes = 0;  // 1, 2, 4 or 8
  bool fortran_order = false;
  std::vector<int64_t> shape;
  int64_t count = 0;        // elements
  int64_t data_offset = 0;  // of the first element, in bytes; all elements lie inside the file
};

bool is_npy(std::span<const std::byte> file);
// Throws Error, with `name`, for what is not a whole .npy file of little-endian numbers.
NpyHeader parse_npy_header(std::span<const std::byte> file, std::string_view name);
// The header of a file, its length a multiple of 64 as numpy writes it. `descr` as in "<f4".
std::string make_npy_header(std::string_view descr, std::span<const int64_t> shape);

}  // namespace brrr
