#include "brrr/backends/cuda/passes.h"

#include "brrr/compiler/fp8/fp8_matmuls.h"
#include "brrr/compiler/fuse/epilogues.h"
#include "brrr/compiler/fuse/join_losses.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/compiler/rewrite/expand.h"
#include "brrr/graph/cuda_call.h"

namespace brrr::backends::passes {

compiler::GraphPass expand() {
  return {.name = "expand",
          .description = "on a GPU: ops without a kernel there as what they are composed of",
          .run =
              [](const graph::Graph& graph, const compiler::PassContext& context) {
                return brrr::compiler::expand(graph, context.device, [](const OpDef& op) {
                  return find_cuda_kernel(op) != nullptr;
                });
              },
          .is_required = true,
          .enters_bodies = true};
}

compiler::GraphPass join_losses() {
  return {.name = "join_losses",
          .description = "on a GPU: losses with their gradients, logits read once",
          .run = [](const graph::Graph& graph, const compiler::PassContext&) {
            return brrr::compiler::join_losses(graph);
          }};
}

compiler::GraphPass gelu_epilogue() {
  return {.name = "gelu_epilogue",
          .description = "on a GPU: GELU and its gradient in the matmuls before them",
          .run = [](const graph::Graph& graph, const compiler::PassContext& context) {
            return compiler::take_gelu_epilogues(graph, context.target, context.options.epilogues);
          }};
}

compiler::GraphPass sum_epilogue() {
  return {.name = "sum_epilogue",
          .description = "on a GPU: bias gradients in the matmuls of the weights' gradients",
          .run = [](const graph::Graph& graph, const compiler::PassContext& context) {
            return compiler::take_sum_epilogues(graph, context.target, context.options.epilogues);
          }};
}

compiler::GraphPass add_epilogue() {
  return {.name = "add_epilogue",
          .description = "on a GPU: additions in the matmuls and norm gradients before them",
          .run = [](const graph::Graph& graph, const compiler::PassContext& context) {
            return compiler::take_add_epilogues(graph, context.target, context.options.epilogues);
          }};
}

compiler::GraphPass fp8_products() {
  return {
      .name = "fp8_products",
      .description = "on a GPU: 8-bit operands along both axes, matmuls that scale their results",
      .run = [](const graph::Graph& graph, const compiler::PassContext&) {
        return compiler::take_fp8_products(graph);
      }};
}

}  // namespace brrr::backends::passes
