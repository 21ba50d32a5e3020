#include "brrr/nn/module.h"

#include <algorithm>
#include <utility>

#include "brrr/graph/trace.h"

namespace brrr {
namespace {

constinit thread_local std::optional<TensorOptions> current_options;

ParameterCounts count_of(const std::vector<NamedTensor>& tensors) {
  ParameterCounts counts;
  std::vector<const Storage*> seen;
  for (const auto& [name, x] : tensors) {
    if (std::find(seen.begin(), seen.end(), &x.storage()) != seen.end()) continue;
    seen.push_back(&x.storage());
    counts.total += x.numel();
    if (x.requires_grad()) counts.trainable += x.numel();
    counts.bytes += x.bytes();
  }
  return counts;
}

// "h.1" is above "h.1.attn" and itself, and not above "h.10".
bool is_at_or_below(std::string_view name, std::string_view prefix) {
  return prefix.empty() || name == prefix ||
         (name.starts_with(prefix) && name[prefix.size()] == '.');
}

}  // namespace

ParameterScope::ParameterScope(TensorOptions options)
    : outer_(std::exchange(current_options, options)) {}
ParameterScope::~ParameterScope() { current_options = outer_; }
TensorOptions parameter_options() { return current_options.value_or(TensorOptions{}); }

Tensor Module::add_parameter(std::string name, const Tensor& value) {
  own_.push_back({std::move(name), value});
  return replace_parameter(own_.back().name, value);
}

Tensor Module::replace_parameter(std::string_view name, const Tensor& value) {
  const auto found = std::find_if(own_.begin(), own_.end(),
                                  [&](const NamedTensor& own) { return own.name == name; });
  invariant(found != own_.end(), "a module has no parameter of its own named ", name);
  value.set_category(Category::parameter);
  value.require_grad();
  found->tensor = value;
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

std::vector<NamedTensor> Module::trainable_parameters() const {
  std::vector<NamedTensor> found = named_parameters();
  std::erase_if(found, [](const NamedTensor& named) { return !named.tensor.requires_grad(); });
  return found;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (NamedTensor& parameter : named_parameters()) tensors.push_back(std::move(parameter.tensor));
  return tensors;
}

ParameterCounts Module::counts() const { return count_of(named_parameters()); }

std::vector<NamedCount> Module::child_counts() const {
  std::vector<NamedCount> counts;
  for (const NamedTensor& own : own_) counts.push_back({own.name, own.tensor.numel()});
  for (const Child& child : children_)
    counts.push_back({child.name, child.module->parameter_count()});
  return counts;
}

void Module::load_state_dict(const std::vector<NamedTensor>& values, const LoadOptions& options) {
  load_tensors(named_parameters(), values, options);
}

void Module::set_trainable(std::string_view prefix, bool trainable) {
  bool any = false;
  for (const auto& [name, x] : named_parameters()) {
    if (!is_at_or_below(name, prefix)) continue;
    any = true;
    if (trainable) {
      x.require_grad();
    } else {
      x.body().grad_slot = {};  // a leaf without a place for its gradient wants none
    }
  }
  check(any, trainable ? "unfreeze" : "freeze", ": no parameter is at or below \"", prefix,
        "\"; named_parameters() lists them");
}
void Module::freeze(std::string_view prefix) { set_trainable(prefix, false); }
void Module::unfreeze(std::string_view prefix) { set_trainable(prefix, true); }

void Module::apply(const std::function<void(const std::string&, Module&)>& visit) {
  apply_below("", visit);
}
void Module::apply_below(const std::string& name,
                         const std::function<void(const std::string&, Module&)>& visit) {
  for (const Child& child : children_)
    child.module->apply_below(name.empty() ? child.name : join_text(name, ".", child.name), visit);
  visit(name, *this);
}

void name_states(const std::vector<NamedTensor>& tensors) {
  graph::Tracer* tracer = graph::Tracer::current();
  if (!tracer) return;
  for (const NamedTensor& named : tensors) tracer->name_state(named.tensor, named.name);
}

}  // namespace brrr
