#include "brrr/nn/module.h"

#include <algorithm>

#include "brrr/graph/trace.h"

namespace brrr {

Tensor Module::add_parameter(std::string name, const Tensor& value) {
  value.set_category(Category::parameter);
  value.require_grad();
  own_.push_back({std::move(name), value});
  return value;
}

void Module::add_module(std::string name, Module& child) {
  child.name_ = name;
  children_.push_back({std::move(name), &child});
}

void Module::collect(const std::string& prefix, std::vector<NamedTensor>& found) const {
  for (const NamedTensor& parameter : own_)
    found.push_back({prefix + parameter.name, parameter.tensor});
  for (const Child& child : children_) child.module->collect(prefix + child.name + ".", found);
}

std::vector<NamedTensor> Module::named_parameters() const {
  std::vector<NamedTensor> found;
  collect("", found);
  return found;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (NamedTensor& parameter : named_parameters()) tensors.push_back(std::move(parameter.tensor));
  return tensors;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  std::vector<const Storage*> seen;
  for (const Tensor& x : parameters()) {
    if (std::find(seen.begin(), seen.end(), &x.storage()) != seen.end()) continue;
    seen.push_back(&x.storage());
    count += x.numel();
  }
  return count;
}

void name_states(const std::vector<NamedTensor>& tensors) {
  Tracer* tracer = Tracer::current();
  if (!tracer) return;
  for (const NamedTensor& named : tensors) tracer->name_state(named.tensor, named.name);
}

}  // namespace brrr
