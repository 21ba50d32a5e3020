// The passes that only a CUDA GPU has.
#pragma once

#include "brrr/compiler/backend.h"

namespace brrr::passes {

GraphPass expand();  // after `precision`, whose table names whole ops
GraphPass join_losses();
GraphPass gelu_epilogue();
GraphPass sum_epilogue();
GraphPass add_epilogue();
GraphPass fp8_products();

}  // namespace brrr::passes
