// Tensors in NumPy's .npy files.
#pragma once

#include <filesystem>

#include "brrr/tensor/tensor.h"

namespace brrr {

Tensor load_npy(const std::filesystem::path& path);
// Row-major, atomically. Dtypes that NumPy does not have (bf16, f8, i4) are refused: cast first.
void save_npy(const std::filesystem::path& path, const Tensor& x);

}  // namespace brrr
