// Shares attention among threads: a unit of work is a block of queries of one head.
#include "brrr/kernels/cpu/attention/attention_cpu.h"

#include <algorithm>

#include "brrr/kernels/cpu/attention/attention_operands.h"
#include "brrr/kernels/cpu/attention/attention_tiles.h"

namespace brrr::kernels {
namespace {

template <typename T>
AttentionKernel<AttentionForward<T>> forward_kernel() {
  if constexpr (sizeof(T) == 4)
    return attention_forward_f32();
  else
    return attention_forward_f64();
}

// Everything a run needs; with scratch that only counts, the sizes of it.
template <typename T>
struct Plan {
  AttentionSizes sizes;
  AttentionRule rule;
  AttentionKernel<AttentionForward<T>> kernel = forward_kernel<T>();
  HeadRows<const T> q, k, v;
  HeadRows<T> out, logsumexp;
  int64_t blocks;  // of one head
  WorkPieces work;

  Plan(const KernelCall& call, Scratch& scratch)
      : sizes(attention_sizes(call.input(0).shape(), call.input(1).shape(), call.input(2).shape())),
        rule(attention_rule(call.attrs)),
        q(read_rows<T>(call, call.input(0), sizes.head_dim, scratch)),
        k(read_rows<T>(call, call.input(1), sizes.head_dim, scratch)),
        v(read_rows<T>(call, call.input(2), kernel.padded(sizes.value_dim), scratch)),
        out(result_rows<T>(call.output(0), scratch)),
        logsumexp{call.output(1).data<T>(), sizes.heads * sizes.queries, sizes.queries, 1},
        blocks((sizes.queries + kernel.width - 1) / kernel.width) {
    const double flops = 2.0 * static_cast<double>(visible_pairs(rule, sizes)) *
                         static_cast<double>(sizes.head_dim + sizes.value_dim);
    work = cut_work(sizes.batch * sizes.heads * blocks, flops);
  }
  int64_t block_bytes() const {
    return scratch_elements<T>(kernel, sizes.head_dim, sizes.value_dim) *
           static_cast<int64_t>(sizeof(T));
  }
};

template <typename T>
AttentionForward<T> block_at(const Plan<T>& plan, const Visibility& visibility, int64_t unit) {
  const int64_t block = unit % plan.blocks, head = unit / plan.blocks % plan.sizes.heads,
                batch = unit / plan.blocks / plan.sizes.heads;
  const int64_t first = block * plan.kernel.width, kv_head = head / plan.sizes.group();
  AttentionForward<T> call;
  call.first = first;
  call.count = std::min(plan.kernel.width, plan.sizes.queries - first);
  call.visible = visibility.of(batch);
  call.scale = plan.rule.scale;
  call.soft_cap = plan.rule.soft_cap;
  call.head_dim = plan.sizes.head_dim;
  call.value_dim = plan.sizes.value_dim;
  call.q = plan.q.at(batch, head, first);
  call.k = plan.k.at(batch, kv_head);
  call.v = plan.v.at(batch, kv_head);
  call.q_stride = plan.q.row_stride;
  call.k_stride = plan.k.row_stride;
  call.v_stride = plan.v.row_stride;
  call.out = plan.out.at(batch, head, first);
  call.out_stride = plan.out.row_stride;
  call.logsumexp = plan.logsumexp.at(batch, head, first);
  return call;
}

template <typename T>
void run(const KernelCall& call) {
  if (call.output(1).count() == 0) return;
  Scratch scratch(call.workspace.data());
  const Plan<T> plan(call, scratch);
  ScratchSlots slots(call.pool, plan.block_bytes(), scratch);
  const Visibility visibility(call, plan.sizes, 3);
  call.pool.for_each_piece(plan.work.count(), [&](int64_t piece) {
    slots.use([&](std::byte* memory) {
      for (int64_t u = plan.work.begin(piece); u < plan.work.begin(piece + 1); ++u) {
        AttentionForward<T> block = block_at(plan, visibility, u);
        block.scratch = reinterpret_cast<T*>(memory);
        plan.kernel.run(block);
      }
    });
  });
  finish_result(call, call.output(0), plan.out);
}

template <typename T>
int64_t workspace(const KernelCall& call) {
  if (call.output(1).count() == 0) return 0;
  Scratch scratch;
  const Plan<T> plan(call, scratch);
  const ScratchSlots slots(call.pool, plan.block_bytes(), scratch);
  return scratch.used();
}

}  // namespace

int64_t attention_workspace(const KernelCall& call) {
  return call.output(0).dtype == DType::f64 ? workspace<double>(call) : workspace<float>(call);
}

void attention_cpu(const KernelCall& call) {
  call.output(0).dtype == DType::f64 ? run<double>(call) : run<float>(call);
}

}  // namespace brrr::kernels
