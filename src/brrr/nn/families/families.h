// The families that the library has: the list is in families.cpp, a line for each.
#pragma once

#include "brrr/nn/model_family.h"

namespace brrr {

std::vector<const ModelFamily*> built_in_families();

}  // namespace brrr
