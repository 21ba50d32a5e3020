// The sweep: every op, brrr's own or a user's, is held against its definition in the same way, with
// no test code of its own. An op brings `samples`; the checks below do the rest.
//
//   sweep::run(my_op);                          // throws Error that names op, check, sample and values
//   for (const auto& check : sweep::checks()) check.run(my_op);
#pragma once

#include <span>
#include <string_view>

#include "brrr/graph/op_def.h"

namespace brrr::sweep {

struct Check {
  std::string_view name;
  std::string_view promise;
  void (*run)(const OpDef& op);
};

std::span<const Check> checks();
void run(const OpDef& op);  // all of them

}  // namespace brrr::sweep
