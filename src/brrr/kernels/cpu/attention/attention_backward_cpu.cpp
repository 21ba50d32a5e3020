// Shares the gradient of attention among threads. A unit of work is a part of the query blocks that read
// one head of k and v: it owns their dQ and adds up dK and dV block by block, in order. Where there are
// few heads, their blocks are cut into several parts with sums of their own, which are added in order.
#include <algorithm>

#include "brrr/kernels/cpu/attention/attention_cpu.h"
#include "brrr/kernels/cpu/attention/attention_operands.h"
#include "brrr/kernels/cpu/attention/attention_tiles.h"
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"

namespace brrr::kernels {
namespace {

constexpr int64_t kEnoughUnits = 16;  // parts beyond this cost memory and save little time
constexpr double kPartFlops = 64e6;   // and so do small ones

template <typename T>
AttentionKernel<AttentionBackward<T>> backward_kernel() {
  if constexpr (sizeof(T) == 4)
    return attention_backward_f32();
  else
    return attention_backward_f64();
}

// Sums for rows of k or v, padded to whole vectors: the output itself where it has that form.
template <typename T>
struct KeySums {
  T* base;
  int64_t columns;  // of a row, padded
  int64_t keys;
  bool direct;
  T* at(int64_t unit) const { return base + unit * keys * columns; }
};

template <typename T>
KeySums<T> key_sums(const Operand& output, int64_t columns, int64_t units, bool one_part,
                    Scratch& scratch) {
  const int64_t keys = output.shape()[2];
  const bool direct = one_part && is_natural(output.dtype) && output.shape()[3] == columns;
  T* const base = direct ? output.data<T>()
                         : reinterpret_cast<T*>(scratch.take(units * keys * columns *
                                                             static_cast<int64_t>(sizeof(T))));
  return {base, columns, keys, direct};
}

template <typename T>
struct Plan {
  AttentionSizes sizes;
  AttentionRule rule;
  AttentionKernel<AttentionBackward<T>> kernel = backward_kernel<T>();
  int64_t blocks;                  // of one query head
  int64_t kv_heads, parts, units;  // kv heads of all batches, parts of each, both
  HeadRows<const T> q, k, v, out, logsumexp, dout, dlogsumexp;
  HeadRows<T> dq;
  KeySums<T> dk, dv;
  WorkPieces work;

  Plan(const KernelCall& call, Scratch& scratch)
      : sizes(attention_sizes(call.input(0).shape(), call.input(1).shape(), call.input(2).shape())),
        rule(attention_rule(call.attrs)),
        blocks((sizes.queries + kernel.width - 1) / kernel.width),
        kv_heads(sizes.batch * sizes.kv_heads),
        parts(choose_parts()),
        units(kv_heads * parts),
        q(read_rows<T>(call, call.input(0), sizes.head_dim, scratch)),
        k(read_rows<T>(call, call.input(1), kernel.padded(sizes.head_dim), scratch)),
        v(read_rows<T>(call, call.input(2), sizes.value_dim, scratch)),
        out(read_rows<T>(call, call.input(3), sizes.value_dim, scratch)),
        logsumexp(read_rows<T>(call, call.input(4), sizes.queries, scratch)),
        dout(read_rows<T>(call, call.input(5), sizes.value_dim, scratch)),
        dlogsumexp(read_rows<T>(call, call.input(6), sizes.queries, scratch)),
        dq(result_rows<T>(call.output(0), scratch)),
        dk(key_sums<T>(call.output(1), kernel.padded(sizes.head_dim), units, parts == 1, scratch)),
        dv(key_sums<T>(call.output(2), kernel.padded(sizes.value_dim), units, parts == 1, scratch)),
        work(cut_work(units, flops())) {}

  int64_t block_bytes() const {
    return scratch_elements<T>(kernel, sizes.head_dim, sizes.value_dim) *
           static_cast<int64_t>(sizeof(T));
  }
  double flops() const {
    return 2.0 * static_cast<double>(visible_pairs(rule, sizes)) *
           static_cast<double>(3 * sizes.head_dim + 2 * sizes.value_dim);
  }
  int64_t choose_parts() const {
    if (kv_heads == 0) return 1;
    const auto worth = static_cast<int64_t>(flops() / static_cast<double>(kv_heads) / kPartFlops);
    const int64_t wanted = std::min((kEnoughUnits + kv_heads - 1) / kv_heads, worth);
    return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, sizes.group() * blocks));
  }
};

// Block `index` of those that read kv head `unit / parts`: the heads of the group one after another.
template <typename T>
AttentionBackward<T> block_at(const Plan<T>& plan, const Visibility& visibility, int64_t unit,
                              int64_t index) {
  const int64_t batch = unit / plan.parts / plan.sizes.kv_heads,
                kv_head = unit / plan.parts % plan.sizes.kv_heads,
                head = kv_head * plan.sizes.group() + index / plan.blocks,
                first = index % plan.blocks * plan.kernel.width;
  AttentionBackward<T> call;
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
  call.dout = plan.dout.at(batch, head, first);
  call.out_stride = plan.out.row_stride;
  call.dout_stride = plan.dout.row_stride;
  call.logsumexp = plan.logsumexp.at(batch, head) + first;
  call.dlogsumexp = plan.dlogsumexp.at(batch, head) + first;
  call.dq = plan.dq.at(batch, head, first);
  call.dq_stride = plan.dq.row_stride;
  call.dk = plan.dk.at(unit);
  call.dv = plan.dv.at(unit);
  call.dk_stride = plan.dk.columns;
  call.dv_stride = plan.dv.columns;
  return call;
}

template <typename T>
void run_unit(const Plan<T>& plan, const Visibility& visibility, int64_t unit, T* scratch) {
  for (const KeySums<T>& sums : {plan.dk, plan.dv})
    std::fill_n(sums.at(unit), sums.keys * sums.columns, T(0));
  const int64_t count = plan.sizes.group() * plan.blocks, part = unit % plan.parts;
  for (int64_t i = count * part / plan.parts; i < count * (part + 1) / plan.parts; ++i) {
    AttentionBackward<T> block = block_at(plan, visibility, unit, i);
    block.scratch = scratch;
    plan.kernel.run(block);
  }
}

// Adds the parts of one head in order and stores its rows.
template <typename T>
void store_sums(const Plan<T>& plan, const KeySums<T>& sums, const Operand& output, int64_t head) {
  T* const total = sums.at(head * plan.parts);
  for (int64_t part = 1; part < plan.parts; ++part) {
    const T* more = sums.at(head * plan.parts + part);
    for (int64_t i = 0; i < sums.keys * sums.columns; ++i) total[i] += more[i];
  }
  const int64_t columns = output.shape()[3];
  for (int64_t key = 0; key < sums.keys; ++key) {
    store_elements(compute_type(output.dtype), total + key * sums.columns, output.dtype,
                   output.base, output.layout->offset + (head * sums.keys + key) * columns, 1,
                   columns);
  }
}

template <typename T>
void run(const KernelCall& call) {
  Scratch scratch(call.workspace.data());
  const Plan<T> plan(call, scratch);
  ScratchSlots slots(call.pool, plan.block_bytes(), scratch);
  const Visibility visibility(call, plan.sizes, 7);
  call.pool.for_each_piece(plan.work.count(), [&](int64_t piece) {
    slots.use([&](std::byte* memory) {
      for (int64_t u = plan.work.begin(piece); u < plan.work.begin(piece + 1); ++u)
        run_unit(plan, visibility, u, reinterpret_cast<T*>(memory));
    });
  });
  finish_result(call, call.output(0), plan.dq);
  for (int i : {1, 2}) {
    const KeySums<T>& sums = i == 1 ? plan.dk : plan.dv;
    if (sums.direct) continue;
    call.pool.for_each_piece(plan.kv_heads,
                             [&](int64_t head) { store_sums(plan, sums, call.output(i), head); });
  }
}

template <typename T>
int64_t workspace(const KernelCall& call) {
  Scratch scratch;
  const Plan<T> plan(call, scratch);
  const ScratchSlots slots(call.pool, plan.block_bytes(), scratch);
  return scratch.used();
}

}  // namespace

int64_t attention_backward_workspace(const KernelCall& call) {
  return call.output(0).dtype == DType::f64 ? workspace<double>(call) : workspace<float>(call);
}

void attention_backward_cpu(const KernelCall& call) {
  call.output(0).dtype == DType::f64 ? run<double>(call) : run<float>(call);
}

}  // namespace brrr::kernels
