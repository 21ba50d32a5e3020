// What `brrr bench kernels` times: groups of kernels, each with the work that it must do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "brrr/graph/op_def.h"

namespace brrr::cli {

// One kernel, or a few launched together, and the fewest bytes and FLOPs that its result takes.
struct KernelWork {
  std::string name;
  std::function<void()> run;
  double bytes, flops;
};

// Kernels that are measured in turn while their operands are held, and how often each is called for one time.
struct KernelGroup {
  std::string name;  // of --only
  std::function<std::vector<KernelWork>()> make;
  int calls;
};

Tensor random_on_gpu(const Shape& shape, DType dtype, uint32_t draw);
Tensor random_ids_on_gpu(const Shape& shape, int64_t below);

// A call of an op with what it costs by its own count.
KernelWork op_work(const std::string& name, const OpDef& op, const Tensors& inputs,
                   const Attrs& attrs);

// Norms, softmax, GELU, sums of columns, gradients of tables, the classifier's loss, the update of AdamW and the norm
// of gradients: what memory bounds. Sizes are several times the cache.
std::vector<KernelGroup> memory_bound_groups();

// 8-bit operands and products, on GPUs that multiply them.
std::vector<KernelWork> fp8_works();

}  // namespace brrr::cli
