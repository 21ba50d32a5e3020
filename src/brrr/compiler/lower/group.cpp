#include "brrr/compiler/lower/group.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "brrr/compiler/graph_names.h"

namespace brrr::compiler {
namespace {

// Tables of a joined kernel lie in the constant memory of a GPU, which has 64 KiB.
constexpr size_t kMostMembers = 1024;

// The name of most of them: "square+sum x 75 and 1 more".
std::string joined_name(const std::vector<Kernel>& kernels) {
  std::map<std::string_view, size_t> counts;
  for (const Kernel& kernel : kernels) ++counts[kernel.name];
  std::string_view most = kernels[0].name;
  for (const Kernel& kernel : kernels) {
    if (counts[kernel.name] > counts[most]) most = kernel.name;
  }
  const size_t others = kernels.size() - counts[most];
  return join_text(most, " x ", counts[most],
                   others > 0 ? join_text(" and ", others, " more") : std::string());
}

class Group {
 public:
  explicit Group(const RenewedStates& renewed) : renewed_(&renewed) {}

  // Of a kernel outside: it runs behind the group, or nobody could tell which value it reads.
  bool must_precede(const Kernel& kernel) const {
    return reads_any(kernel, written_) || writes_any(kernel, read_);
  }

  // No kernel of a group may read or write what another one writes.
  bool accepts(const Kernel& kernel) const {
    return members_.size() < kMostMembers && !must_precede(kernel) && !writes_any(kernel, written_);
  }

  void add(Kernel kernel) {
    for (const OperandRef& ref : kernel.inputs) read_.insert(ref.buffer);
    for (const OperandRef& ref : kernel.outputs) {
      written_.insert(ref.buffer);
      if (const auto state = renewed_->find(ref.buffer); state != renewed_->end())
        written_.insert(state->second);
    }
    members_.push_back(std::move(kernel));
  }

  void clear() { *this = Group(*renewed_); }
  bool empty() const { return members_.empty(); }
  const std::vector<Kernel>& members() const { return members_; }
  const std::set<BufferId>& read() const { return read_; }

  // `join(all, kernel)` is told each kernel before its operands become the last of all.
  template <typename Join>
  Kernel joined(const Join& join) {
    if (members_.size() == 1) return std::move(members_[0]);
    Kernel all{.phase = members_[0].phase, .name = joined_name(members_)};
    for (Kernel& kernel : members_) {
      const std::vector<OperandRef> inputs = std::move(kernel.inputs),
                                    outputs = std::move(kernel.outputs);
      all.cost += kernel.cost;
      all.parts.insert(all.parts.end(), kernel.parts.begin(), kernel.parts.end());
      join(all, kernel, inputs.size(), outputs.size());
      all.inputs.insert(all.inputs.end(), inputs.begin(), inputs.end());
      all.outputs.insert(all.outputs.end(), outputs.begin(), outputs.end());
    }
    return all;
  }

 private:
  static bool reads_any(const Kernel& kernel, const std::set<BufferId>& buffers) {
    return std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                       [&](const OperandRef& ref) { return buffers.count(ref.buffer) > 0; });
  }
  bool writes_any(const Kernel& kernel, const std::set<BufferId>& buffers) const {
    return std::any_of(kernel.outputs.begin(), kernel.outputs.end(), [&](const OperandRef& ref) {
      const auto state = renewed_->find(ref.buffer);
      return buffers.count(ref.buffer) > 0 ||
             (state != renewed_->end() && buffers.count(state->second) > 0);
    });
  }

  const RenewedStates* renewed_;
  std::vector<Kernel> members_;
  std::set<BufferId> read_, written_;  // old values of states that are renewed count as written
};

void join_program(Kernel& all, Kernel& kernel, size_t inputs, size_t outputs) {
  Attachment part{.program = std::move(kernel.program), .inputs = {}, .outputs = {}};
  for (size_t i = 0; i < inputs; ++i)
    part.inputs.push_back(static_cast<int>(all.inputs.size() + i));
  for (size_t i = 0; i < outputs; ++i)
    part.outputs.push_back(static_cast<int>(all.outputs.size() + i));
  all.attachments.push_back(std::move(part));
}

void join_member(Kernel& all, Kernel& kernel, size_t inputs, size_t outputs) {
  kernel.inputs.clear();
  kernel.outputs.clear();
  all.members.push_back({.kernel = std::make_shared<const Kernel>(std::move(kernel)),
                         .first_input = all.inputs.size(),
                         .inputs = inputs,
                         .first_output = all.outputs.size(),
                         .outputs = outputs});
}

class ReductionGroups {
 public:
  ReductionGroups(KernelList& list, const RenewedStates& renewed)
      : list_(list), renewed_(renewed), last_reader_(list.buffers.size(), 0) {
    for (size_t k = 0; k < list.kernels.size(); ++k) {
      for (const OperandRef& ref : list.kernels[k].inputs) last_reader_[ref.buffer.index()] = k;
    }
  }

  void run() {
    for (size_t k = 0; k < list_.kernels.size(); ++k) {
      Kernel& kernel = list_.kernels[k];
      const bool is_member = is_reduction(kernel);
      finish_where([&](const Open& open) {
        if (is_member && open.phase() == kernel.phase) return !open.group.accepts(kernel);
        return open.group.must_precede(kernel) || (!is_member && !may_wait_for(open.group, k));
      });
      is_member ? add(std::move(kernel)) : kernels_.push_back(std::move(kernel));
    }
    finish_where([](const Open&) { return true; });
    list_.kernels = std::move(kernels_);
  }

 private:
  // A group that waits: one of each part of the step, none of which reads from another.
  struct Open {
    Group group;
    size_t place;  // of its first kernel, were it alone
    Phase phase() const { return group.members()[0].phase; }
  };

  static bool is_reduction(const Kernel& kernel) {
    return kernel.op && !kernel.attachments.empty() &&
           std::any_of(kernel.outputs.begin(), kernel.outputs.end(),
                       [](const OperandRef& ref) { return numel(ref.layout.shape) > 0; });
  }

  void add(Kernel kernel) {
    auto own = std::find_if(open_.begin(), open_.end(),
                            [&](const Open& open) { return open.phase() == kernel.phase; });
    if (own == open_.end()) own = open_.insert(own, {Group(renewed_), kernels_.size()});
    own->group.add(std::move(kernel));
  }

  // Kernel k runs ahead of the group; what the group reads is there that long.
  bool may_wait_for(const Group& group, size_t k) const {
    constexpr int64_t kMostHeldBytes = int64_t{1} << 20;
    int64_t held = 0;
    for (const BufferId id : group.read()) {
      const Buffer& buffer = list_.buffers[id.index()];
      if (buffer.place == Place::temporary && last_reader_[id.index()] <= k) held += buffer.bytes;
    }
    return held <= kMostHeldBytes;
  }

  template <typename Condition>
  void finish_where(const Condition& is_due) {
    for (size_t i = 0; i < open_.size();) {
      if (!is_due(open_[i])) {
        ++i;
        continue;
      }
      Open due = std::move(open_[i]);
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      finish(std::move(due));
    }
  }

  // One that has waited in vain runs where it was.
  void finish(Open due) {
    const size_t place = due.group.members().size() == 1 ? due.place : kernels_.size();
    kernels_.insert(kernels_.begin() + static_cast<std::ptrdiff_t>(place),
                    due.group.joined(join_member));
    for (Open& other : open_) other.place += other.place > place ? 1 : 0;
  }

  KernelList& list_;
  const RenewedStates& renewed_;
  std::vector<size_t> last_reader_;  // by buffer: a kernel of the old list
  std::vector<Kernel> kernels_;      // the new one
  std::vector<Open> open_;
};

}  // namespace

void group_programs(KernelList& list, const RenewedStates& renewed) {
  std::vector<Kernel> kernels;
  Group group(renewed);
  const auto finish = [&] {
    if (!group.empty()) kernels.push_back(group.joined(join_program));
    group.clear();
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

void group_reductions(KernelList& list, const RenewedStates& renewed) {
  ReductionGroups(list, renewed).run();
}

}  // namespace brrr::compiler
