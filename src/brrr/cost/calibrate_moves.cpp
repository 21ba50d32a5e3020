#include "brrr/cost/calibrate_moves.h"

#include <algorithm>

#include "brrr/autodiff/grad.h"
#include "brrr/ops/conv/pool.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/index/index_select.h"
#include "brrr/ops/index/sort.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/join.h"
#include "brrr/ops/view/pad_roll.h"
#include "brrr/ops/view/views.h"

namespace brrr::cost {
namespace {

// Fixed values: speed does not depend on them.
Tensor values(const Shape& shape) {
  CategoryScope scope(Category::data);
  return uniform(shape, RandomKey{.seed = 1}, {.low = -1, .high = 1});
}
Tensor ids(const Shape& shape, int64_t below) {
  CategoryScope scope(Category::data);
  return randint(shape, RandomKey{.seed = 2}, 0, below);
}

}  // namespace

std::vector<RowProgram> window_programs(int64_t rows, int64_t row) {
  const Tensor leaf = values({rows, row});
  leaf.require_grad();
  return {{.family = "max_pool2d",
           .op = "max_pool2d",
           .function = [](std::span<const Tensor> y) -> Tensors { return {max_pool2d(y[0], {})}; },
           .inputs = {values({1, 4, rows, row})}},
          {.family = "fold",
           .op = "fold",
           .function = [leaf](std::span<const Tensor> y) -> Tensors {
             return {grad(unfold(leaf, 1, 3, 1), std::vector<Tensor>{leaf}, {.seed = y[0]})[0]};
           },
           .inputs = {values({rows, row - 2, 3})}},
          {.family = "pad",
           .op = "pad",
           .function = [](std::span<const Tensor> y) -> Tensors {
             return {pad(y[0], {0, 1}, {0, 1})};
           },
           .inputs = {values({rows, row})}},
          {.family = "scatter_add",
           .op = "scatter_add",
           .function = [](std::span<const Tensor> y) -> Tensors {
             return {scatter_add(y[0], 1, y[1], y[2])};
           },
           .inputs = {values({rows, row}), ids({rows, row / 4}, row), values({rows, row / 4})}}};
}

std::vector<RowProgram> routing_programs(int64_t rows, int64_t row) {
  constexpr int64_t kChoices = 2;  // experts of a token
  const Tensor tokens = values({rows, row}), places = ids({rows}, rows);
  // Rows of scores are tokens here, and their elements are experts.
  return {
      {.family = "topk",
       .op = "topk",
       .function = [](std::span<const Tensor> y) -> Tensors {
         return {topk(y[0], kChoices).indices};
       },
       .inputs = {tokens}},
      {.family = "gather",
       .op = "gather",
       .function = [](std::span<const Tensor> y) -> Tensors { return {gather(y[0], 1, y[1])}; },
       .inputs = {tokens, ids({rows, row}, row)}},
      {.family = "one_hot",
       .op = "one_hot",
       .function = [row](std::span<const Tensor> y) -> Tensors { return {one_hot(y[0], row)}; },
       .inputs = {ids({rows}, row)}},
      {.family = "cumsum",
       .op = "cumsum",
       .function = [](std::span<const Tensor> y) -> Tensors { return {cumsum(y[0], 0)}; },
       .inputs = {ids({rows, row}, 2)}},
      {.family = "scatter_add.rows",
       .op = "scatter_add",
       .function = [](std::span<const Tensor> y) -> Tensors {
         return {index_add(y[0], 0, y[1], y[2])};
       },
       .inputs = {values({rows, row}), places, tokens}},
      {.family = "index_select",
       .op = "index_select",
       .function = [](std::span<const Tensor> y) -> Tensors {
         return {index_select(y[0], 0, y[1])};
       },
       .inputs = {tokens, places}},
      {.family = "concat",
       .op = "concat",
       .function = [](std::span<const Tensor> y) -> Tensors {
         return {concat({y[0], y[1]}, 0)};
       },
       .inputs = {values({rows - rows / 2, row}), values({std::max<int64_t>(1, rows / 2), row})}}};
}

}  // namespace brrr::cost
