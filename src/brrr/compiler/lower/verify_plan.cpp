#include "brrr/compiler/lower/verify_plan.h"

#include <map>

namespace brrr::compiler {
namespace {

// Walks the kernels with the set of temporaries that are alive, by offset.
class PlanVerifier {
 public:
  explicit PlanVerifier(const KernelProgram& program)
      : list_(program.list), plan_(program.plan), last_(program.list.buffers.size(), -1) {}

  void run() {
    invariant(plan_.offsets.size() == list_.buffers.size(), "plan: ", plan_.offsets.size(),
              " places for ", list_.buffers.size(), " buffers");
    find_last_uses();
    for (size_t k = 0; k < list_.kernels.size(); ++k) check_kernel(static_cast<int>(k));
  }

 private:
  template <typename Visit>
  static void for_each_buffer(const Kernel& kernel, const Visit& visit) {
    for (const OperandRef& ref : kernel.inputs) visit(ref.buffer);
    for (const OperandRef& ref : kernel.outputs) visit(ref.buffer);
    if (kernel.workspace.valid()) visit(kernel.workspace);
  }
  bool is_temporary(BufferId id) const {
    const Buffer& buffer = list_.buffers[id.index()];
    return buffer.place == Place::temporary && buffer.bytes > 0;
  }
  int64_t begin_of(BufferId id) const { return plan_.offsets[id.index()]; }
  int64_t end_of(BufferId id) const { return begin_of(id) + list_.buffers[id.index()].bytes; }

  void find_last_uses() {
    for (size_t k = 0; k < list_.kernels.size(); ++k)
      for_each_buffer(list_.kernels[k],
                      [&](BufferId id) { last_[id.index()] = static_cast<int>(k); });
  }

  void check_kernel(int k) {
    const Kernel& kernel = list_.kernels[static_cast<size_t>(k)];
    for_each_buffer(kernel, [&](BufferId id) {
      if (is_temporary(id) && !is_alive(id)) make_alive(id, k);
    });
    for_each_buffer(kernel, [&](BufferId id) {
      if (is_temporary(id) && last_[id.index()] == k && is_alive(id)) alive_.erase(begin_of(id));
    });
  }

  bool is_alive(BufferId id) const {
    const auto found = alive_.find(begin_of(id));
    return found != alive_.end() && found->second == id;
  }

  void make_alive(BufferId id, int k) {
    const Kernel& kernel = list_.kernels[static_cast<size_t>(k)];
    invariant(
        begin_of(id) >= 0 && begin_of(id) % kArenaAlignment == 0 && end_of(id) <= plan_.arena_bytes,
        "plan: ", kernel.name, " touches bytes [", begin_of(id), ", ", end_of(id),
        ") of an arena of ", plan_.arena_bytes);
    auto next = alive_.upper_bound(begin_of(id));
    if (next != alive_.begin() && end_of(std::prev(next)->second) > begin_of(id)) --next;
    while (next != alive_.end() && begin_of(next->second) < end_of(id)) {
      check_handover(next->second, id, k);
      next = alive_.erase(next);
    }
    alive_.emplace(begin_of(id), id);
  }

  // `made` takes bytes of `old` in kernel k.
  void check_handover(BufferId old, BufferId made, int k) const {
    const Kernel& kernel = list_.kernels[static_cast<size_t>(k)];
    const auto refuse = [&](std::string_view why) {
      invariant(false, "plan: ", kernel.name, " (kernel ", k, ") writes bytes [", begin_of(made),
                ", ", end_of(made), ") over those of [", begin_of(old), ", ", end_of(old), "), ",
                why);
    };
    if (last_[old.index()] != k) refuse("which are read later");
    if (begin_of(old) != begin_of(made)) refuse("which it still reads");
    bool is_output = false;
    for (size_t o = 0; o < kernel.outputs.size(); ++o) {
      if (kernel.outputs[o].buffer != made) continue;
      is_output = true;
      for (size_t i = 0; i < kernel.inputs.size(); ++i) {
        if (kernel.inputs[i].buffer != old) continue;
        if (kernel.inputs[i].layout != kernel.outputs[o].layout || !may_overwrite(kernel, i, o))
          refuse("which it reads in another order");
      }
    }
    if (!is_output) refuse("and it is no result");
  }

  const KernelList& list_;
  const MemoryPlan& plan_;
  std::vector<int> last_;              // by buffer: the last kernel that touches it
  std::map<int64_t, BufferId> alive_;  // by offset; they never overlap
};

}  // namespace

void verify_plan(const KernelProgram& program) {
  PlanVerifier(program).run();
  for (const Kernel& kernel : program.list.kernels) {
    if (kernel.body) verify_plan(*kernel.body);
  }
}

}  // namespace brrr::compiler
