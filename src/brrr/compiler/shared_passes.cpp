// The passes that every backend lists.
#include "brrr/compiler/backend.h"
#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/pipeline.h"
#include "brrr/compiler/rewrite/simplify.h"

namespace brrr::compiler::passes {

GraphPass precision() {
  return {.name = "precision",
          .description = "low types where the policy says so",
          .run =
              [](const Graph& graph, const PassContext& context) {
                return apply_precision(graph, context.options.precision);
              },
          .is_required = true,
          .enters_bodies = true};
}

GraphPass simplify() {
  return {.name = "simplify",
          .description = "equal nodes once, unread nodes gone",
          .run = [](const Graph& graph, const PassContext&) { return compiler::simplify(graph); }};
}

GraphPass chunk_head() {
  return {.name = "chunk_head",
          .description = "rows of large logits in chunks, each with its gradients at once",
          .run = [](const Graph& graph, const PassContext& context) {
            return chunk_heads(graph, context.options.head);
          }};
}

GraphPass rematerialize() {
  return {.name = "rematerialize",
          .description = "with what the backward part recomputes",
          .run = [](const Graph& graph, const PassContext& context) {
            return compiler::rematerialize(graph, context.options.remat, context.planner);
          }};
}

}  // namespace brrr::compiler::passes
