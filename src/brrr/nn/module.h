// A part of a model: it owns parameters and other modules, by name, in the order in which they were
// added. Names join with dots: "h.0.attn.c_attn.weight".
#pragma once

#include <string>
#include <vector>

#include "brrr/graph/scope.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;  // children hold their place in the parent
  Module& operator=(const Module&) = delete;

  std::vector<NamedTensor> named_parameters() const;
  std::vector<Tensor> parameters() const;
  int64_t parameter_count() const;  // elements; a tensor used twice counts once

 protected:
  // Takes the tensor as a leaf that wants its gradient, booked as a parameter.
  Tensor add_parameter(std::string name, const Tensor& value);
  void add_module(std::string name, Module& child);
  // Puts the name of this module on what is traced while the result lives; the first line of a call:
  //   const Scope scope = enter();
  Scope enter() const { return Scope(name_); }

 private:
  void collect(const std::string& prefix, std::vector<NamedTensor>& found) const;

  struct Child {
    std::string name;
    const Module* module;
  };
  std::string name_;  // as the parent calls it; empty at the root
  std::vector<NamedTensor> own_;
  std::vector<Child> children_;
};

// Gives the states of the current trace the names of these tensors; outside a trace it does nothing.
void name_states(const std::vector<NamedTensor>& tensors);

}  // namespace brrr
