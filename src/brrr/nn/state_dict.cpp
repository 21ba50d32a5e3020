#include "brrr/nn/state_dict.h"

#include <map>
#include <string_view>

#include "brrr/ops/create/copy.h"

namespace brrr {
namespace {

// At most so many names of one kind of fault are written out.
constexpr size_t kShown = 8;

struct Faults {
  std::string_view what;
  std::vector<std::string> names;

  void append_to(std::string& text) const {
    if (names.empty()) return;
    text += join_text("\n  ", names.size(), " ", what, ": ");
    for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
      text += join_text(i == 0 ? "" : ", ", names[i]);
    if (names.size() > kShown) text += ", ...";
  }
};

using ByName = std::map<std::string_view, const Tensor*>;

std::string mismatch(const NamedTensor& target, const Tensor& value) {
  return join_text(target.name, " (is ", describe(target.tensor), ", given ", describe(value), ")");
}

}  // namespace

void load_tensors(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& values,
                  const LoadOptions& options) {
  Faults missing{"missing", {}}, unexpected{"unexpected", {}}, twice{"given twice", {}},
      shapes{"of another shape", {}};
  ByName given, wanted;
  for (const NamedTensor& value : values) {
    if (!given.emplace(value.name, &value.tensor).second) twice.names.push_back(value.name);
  }
  for (const NamedTensor& target : targets) {
    wanted.emplace(target.name, &target.tensor);
    const auto found = given.find(target.name);
    if (found == given.end()) {
      if (!options.allow_missing) missing.names.push_back(target.name);
    } else if (found->second->shape() != target.tensor.shape()) {
      shapes.names.push_back(mismatch(target, *found->second));
    }
  }
  for (const NamedTensor& value : values) {
    if (!options.allow_unexpected && !wanted.contains(value.name))
      unexpected.names.push_back(value.name);
  }

  std::string faults;
  for (const Faults* kind : {&missing, &unexpected, &twice, &shapes}) kind->append_to(faults);
  check(faults.empty(), "load: the values do not fit and nothing was loaded", faults,
        "\nuse a model of the same configuration, or allow_missing / allow_unexpected for a part");

  NoGrad values_only;
  for (const NamedTensor& target : targets) {
    const auto found = given.find(target.name);
    if (found != given.end())
      target.tensor.copy_from(to(found->second->detach(), target.tensor.device()));
  }
}

}  // namespace brrr
