// The passes that only a CUDA GPU has.
#pragma once

#include "brrr/compiler/backend.h"

namespace brrr::backends::passes {

compiler::GraphPass expand();  // after `precision`, whose table names whole ops
compiler::GraphPass join_losses();
compiler::GraphPass gelu_epilogue();
compiler::GraphPass sum_epilogue();
compiler::GraphPass add_epilogue();
compiler::GraphPass fp8_products();

}  // namespace brrr::backends::passes
