// The message of the Error that an action throws, for tests of messages.
#pragma once

#include <string>

#include "brrr/base/error.h"

namespace brrr {

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace brrr
