#include "brrr/compiler/rewrite/added_states.h"

#include "brrr/ops/create/creation.h"

namespace brrr::compiler {

Tensor AddedStates::copy_of(const Tensor& master, DType dtype) {
  for (const Copy& entry : copies_) {
    if (shares_storage(entry.master, master) && entry.copy.dtype() == dtype) return entry.copy;
  }
  const CategoryScope booked_as(master.storage().category());
  copies_.push_back({master, empty(master.shape(), dtype, master.device())});
  return copies_.back().copy;
}

const AddedStates::Named& AddedStates::named(const std::string& name, const TensorType& type,
                                             double initial, Device device) {
  int alike = 1;
  for (const Named& entry : named_) {
    const bool numbered = entry.name == name || entry.name.starts_with(name + ".");
    if (numbered && entry.tensor.shape() == type.shape && entry.tensor.dtype() == type.dtype)
      return entry;
    if (numbered) ++alike;
  }
  const CategoryScope booked_as(Category::optimizer);
  named_.push_back({alike == 1 ? name : join_text(name, ".", alike),
                    full(type.shape, initial, {.dtype = type.dtype, .device = device})});
  return named_.back();
}

}  // namespace brrr::compiler
