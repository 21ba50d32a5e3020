#include "brrr/optim/registry.h"

#include "brrr/optim/optimizer.h"

namespace brrr {
namespace {

std::vector<const OptimizerEntry*>& all_entries() {
  static std::vector<const OptimizerEntry*> entries{
      &adamw_entry, &adam_entry, &sgd_entry,     &momentum_entry, &nesterov_entry,
      &lion_entry,  &muon_entry, &rmsprop_entry, &adagrad_entry};
  return entries;
}

}  // namespace

const std::vector<const OptimizerEntry*>& optimizer_entries() { return all_entries(); }

void register_optimizer(const OptimizerEntry& entry) {
  check(find_optimizer(entry.name) == nullptr, "an optimizer named \"", entry.name,
        "\" is registered already; choose another name");
  all_entries().push_back(&entry);
}

const OptimizerEntry* find_optimizer(std::string_view name) {
  for (const OptimizerEntry* entry : all_entries()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

std::string optimizer_names() {
  const std::vector<const OptimizerEntry*>& entries = all_entries();
  std::string names(entries.front()->name);
  for (size_t i = 1; i < entries.size(); ++i)
    names += join_text(i + 1 == entries.size() ? " or " : ", ", entries[i]->name);
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view name,
                                          std::vector<NamedTensor> parameters,
                                          const OptimizerSettings& settings) {
  const OptimizerEntry* entry = find_optimizer(name);
  check(entry != nullptr, "there is no optimizer \"", name, "\"; use ", optimizer_names());
  return entry->make(std::move(parameters), settings);
}

}  // namespace brrr
