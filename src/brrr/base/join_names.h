// Names of a list in a message: "adam, adamw, sgd".
//   fail("there is no op \"", name, "\"; use one of ", join_names(kOps, &OpInfo::name));
#pragma once

#include <functional>
#include <ranges>
#include <string>
#include <utility>

#include "brrr/base/error.h"

namespace brrr {

// `name` gives the text of an element: a member, or a function of it; by default the element itself.
template <std::ranges::input_range List, typename Name = std::identity>
std::string join_names(List&& list, Name name = {}) {
  std::string text;
  for (auto&& each : list) {
    if (!text.empty()) text += ", ";
    text += join_text(std::invoke(name, each));
  }
  return text;
}

}  // namespace brrr
