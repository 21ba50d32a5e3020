// On a GPU: a loss and its gradient in one kernel. Where cross_entropy_backward follows cross_entropy of the same logits
// before anybody reads the losses, as in every chunk of a head (compiler/head/chunk_head.h), ops/loss/fused_cross_entropy.cpp stands for
// both: logits are read once instead of twice.
#pragma once

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {

Graph join_losses(const Graph& graph);

}  // namespace brrr::compiler
