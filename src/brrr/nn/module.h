// A part of a model: it owns parameters and other modules, by name, in the order in which they were
// added. Names join with dots: "h.0.attn.c_attn.weight".
//
//   model.parameter_count();                      // 124439808
//   save(model.state_dict());  model.load_state_dict(read(file));
//   model.freeze("wte");                          // all below it; unfreeze() is the way back
//   model.apply([](const std::string& name, Module& part) { ... });
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/graph/scope.h"
#include "brrr/nn/state_dict.h"
#include "brrr/ops/create/creation.h"

namespace brrr {

// What parameters made on this thread are, while the scope lives. A model made under
// {.device = Device::null()} has names, shapes and counts and takes no memory.
class ParameterScope {
 public:
  explicit ParameterScope(TensorOptions options);
  ~ParameterScope();
  ParameterScope(const ParameterScope&) = delete;
  ParameterScope& operator=(const ParameterScope&) = delete;

 private:
  std::optional<TensorOptions> outer_;
};
TensorOptions parameter_options();  // outside any scope f32 on the default device

struct ParameterCounts {
  int64_t total = 0;      // elements; a tensor used twice counts once
  int64_t trainable = 0;  // of them not frozen
  Bytes bytes;
};

struct NamedCount {
  std::string name;
  int64_t count;
};

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;  // children hold their place in the parent
  Module& operator=(const Module&) = delete;

  std::vector<NamedTensor> named_parameters() const;
  std::vector<NamedTensor> trainable_parameters() const;  // those that are not frozen
  std::vector<Tensor> parameters() const;

  ParameterCounts counts() const;
  int64_t parameter_count() const { return counts().total; }
  std::vector<NamedCount> child_counts() const;  // its own tensors and its children, in order

  // The parameters themselves by name, not copies: what a checkpoint writes.
  std::vector<NamedTensor> state_dict() const { return named_parameters(); }
  // Copies values in, converting dtypes. Throws Error, before anything is written, that lists every name
  // that is missing, unexpected or of another shape.
  void load_state_dict(const std::vector<NamedTensor>& values, const LoadOptions& options = {});

  // Takes the parameters at or below `prefix` ("h.0", "wte.weight"; "": all) out of training, or back in.
  // Throws Error where there is none. An optimizer made before keeps its own list.
  void freeze(std::string_view prefix = "");
  void unfreeze(std::string_view prefix = "");

  // Calls visit(name, module) for every module below this one and then for itself, whose name is "".
  void apply(const std::function<void(const std::string&, Module&)>& visit);

 protected:
  // Takes the tensor as a leaf that wants its gradient, booked as a parameter.
  Tensor add_parameter(std::string name, const Tensor& value);
  // Puts the tensor in the place of this module's own parameter of that name.
  Tensor replace_parameter(std::string_view name, const Tensor& value);
  void add_module(std::string name, Module& child);
  // Puts the name of this module on what is traced while the result lives; the first line of a call:
  //   const Scope scope = enter();
  graph::Scope enter() const { return graph::Scope(name_); }

 private:
  void collect(const std::string& prefix, std::vector<NamedTensor>& found) const;
  void apply_below(const std::string& name,
                   const std::function<void(const std::string&, Module&)>& visit);
  void set_trainable(std::string_view prefix, bool trainable);

  struct Child {
    std::string name;
    Module* module;
  };
  std::string name_;  // as the parent calls it; empty at the root
  std::vector<NamedTensor> own_;
  std::vector<Child> children_;
};

// Gives the states of the current trace the names of these tensors; outside a trace it does nothing.
void name_states(const std::vector<NamedTensor>& tensors);

}  // namespace brrr
