// What a GPU is calibrated on: families of kernels at the points of their grids, each a kernel by itself. Products and
// attention in every arithmetic, with and without epilogues, norms, losses and embeddings. No model is among them;
// sizes are those around which transformers lie.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "brrr/compiler/lower/kernel_list.h"
#include "brrr/hardware/rates.h"

namespace brrr::cost {

struct CudaFamily {
  std::string name;         // "matmul.nt.bf16"
  hardware::RateGrid grid;  // with axes, without values
  std::function<compiler::Kernel(std::span<const double> where)> make;
  int64_t ids_below = 1;

  // The point of the grid with this number, the last axis fastest.
  std::vector<double> point(size_t index) const;
};

// `most_tokens` rows at most in products, rows and attention: what memory allows.
std::vector<CudaFamily> cuda_families(int64_t most_tokens);
// The families that a small model spends its time in, on coarse grids, the most important first.
std::vector<CudaFamily> quick_cuda_families();

}  // namespace brrr::cost
