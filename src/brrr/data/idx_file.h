// IDX files, in which MNIST and its kin come: images and labels as bytes, packed by gzip or not.
//
//   Tensor images = load_idx("train-images-idx3-ubyte.gz");   // u8 [60000, 28, 28]
#pragma once

#include <filesystem>

#include "brrr/tensor/tensor.h"

namespace brrr {

// Throws Error, naming the file, for what is not a whole IDX file of unsigned bytes.
Tensor load_idx(const std::filesystem::path& path);

}  // namespace brrr
