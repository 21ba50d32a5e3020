// States that passes add to a program: low-precision copies of parameters, amax histories, the loss
// scale. One object serves all programs of a compiled function, so that a step traced again for other
// shapes goes on with the same ones.
#pragma once

#include <string>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr::compiler {

class AddedStates {
 public:
  // The copy of `master` in this dtype. Its elements are not set: whoever runs the program casts them
  // from the master (StateSlot::copy_of).
  Tensor copy_of(const Tensor& master, DType dtype);

  struct Named {
    std::string name;
    Tensor tensor;
  };
  // The state of this name and type, or a new one filled with `initial`. Another type under the same name
  // (a program with other operands) is another state: "fp8.scale", then "fp8.scale.2".
  const Named& named(const std::string& name, const TensorType& type, double initial,
                     Device device);

 private:
  struct Copy {
    Tensor master, copy;  // the master is kept, so that no other storage gets its address
  };
  std::vector<Copy> copies_;
  std::vector<Named> named_;
};

}  // namespace brrr::compiler
