#include "brrr/compiler/group.h"

#include <set>
#include <utility>

namespace brrr {
namespace {

class Group {
 public:
  // No kernel of a group may read or write what another one writes.
  bool accepts(const Kernel& kernel) const {
    for (const OperandRef& ref : kernel.inputs) {
      if (written_.count(ref.buffer.value)) return false;
    }
    for (const OperandRef& ref : kernel.outputs) {
      if (written_.count(ref.buffer.value) || read_.count(ref.buffer.value)) return false;
    }
    return true;
  }

  void add(Kernel kernel) {
    for (const OperandRef& ref : kernel.inputs) read_.insert(ref.buffer.value);
    for (const OperandRef& ref : kernel.outputs) written_.insert(ref.buffer.value);
    members_.push_back(std::move(kernel));
  }

  bool empty() const { return members_.empty(); }

  Kernel joined() {
    if (members_.size() == 1) return std::move(members_[0]);
    Kernel all{.phase = members_[0].phase};
    all.name = join_text(members_[0].name, " and ", members_.size() - 1, " more");
    for (Kernel& kernel : members_) {
      Attachment part{.program = std::move(kernel.program), .inputs = {}, .outputs = {}};
      for (const OperandRef& ref : kernel.inputs) {
        part.inputs.push_back(static_cast<int>(all.inputs.size()));
        all.inputs.push_back(ref);
      }
      for (const OperandRef& ref : kernel.outputs) {
        part.outputs.push_back(static_cast<int>(all.outputs.size()));
        all.outputs.push_back(ref);
      }
      all.attachments.push_back(std::move(part));
      all.cost += kernel.cost;
      all.parts.insert(all.parts.end(), kernel.parts.begin(), kernel.parts.end());
    }
    return all;
  }

 private:
  std::vector<Kernel> members_;
  std::set<int32_t> read_, written_;
};

}  // namespace

void group_programs(KernelList& list) {
  std::vector<Kernel> kernels;
  Group group;
  const auto finish = [&] {
    if (!group.empty()) kernels.push_back(group.joined());
    group = {};
  };
  for (Kernel& kernel : list.kernels) {
    if (!kernel.program || !group.accepts(kernel)) finish();
    if (kernel.program) {
      group.add(std::move(kernel));
    } else {
      kernels.push_back(std::move(kernel));
    }
  }
  finish();
  list.kernels = std::move(kernels);
}

}  // namespace brrr
