#include "brrr/sweep/sweep.h"

#include <cstring>

#include "brrr/graph/call.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/sweep/compare.h"
#include "brrr/sweep/compiled.h"
#include "brrr/sweep/gradients.h"
#include "brrr/sweep/layouts.h"

namespace brrr::sweep {
namespace {

// The dtype in which an op is swept where one is enough.
DType main_dtype(const OpDef& op) {
  return op.dtypes.contains(DType::f32) ? DType::f32 : DType::i64;
}

// ---- The description itself.

void check_description(const OpDef& op) {
  check(!op.name.empty() && !op.formula.empty(), "op \"", op.name,
        "\": name and formula must say what it is");
  check(op.infer != nullptr, op.name, ": has no infer rule");
  check((op.kind == OpKind::view) == (op.view != nullptr), op.name,
        ": views, and only views, have a layout rule");
  check(op.view || op.cpu || op.compose, op.name,
        ": has neither a kernel nor a composition, so it cannot run");
  check(!op.tiles || op.kind == OpKind::elementwise, op.name, ": only elementwise ops have tiles");
  check(op.view || op.compose || op.scalar || op.reference, op.name,
        ": has no definition to hold its kernel against");
  check(op.samples && !op.samples().empty(), op.name, ": has no samples");
}

// ---- Types.

void check_types(const OpDef& op) {
  for (const Case& c : cases_of(op, main_dtype(op))) {
    SmallVector<TypeRef, 4> types;
    for (const Tensor& input : c.inputs) types.push_back({&input.shape(), input.dtype(), false});
    const TensorTypes promised = op.infer({op, types, c.attrs});
    const Tensors results = run_case(c);
    check(results.size() == promised.size(), c, ": gives ", results.size(),
          " results and promises ", promised.size());
    for (int i = 0; i < results.size(); ++i) {
      check(results[i].type() == promised[i], c, ": result ", i, " is ", describe(results[i]),
            " and ", promised[i], " was promised");
    }
  }
}

// ---- Values: the kernel means what the definition says, in every dtype it claims.

void check_values(const OpDef& op) {
  for (DType dtype : kAllDTypes) {
    if (!op.dtypes.contains(dtype) || is_packed(dtype)) continue;
    for (const Case& c : cases_of(op, dtype)) {
      if (is_large(c) && dtype != main_dtype(op))
        continue;  // size is for threads, and one dtype shows them
      const Tensors got = run_case(c), expected = oracle(c);
      for (int i = 0; i < expected.size(); ++i) {
        require_close(c, "the result", got[i], expected[i],
                      op.tolerance * tolerance_of(expected[i].dtype()));
      }
    }
  }
}

// ---- Layouts: strides, offsets and alignment of the inputs do not matter.

// The first row of each input repeated by a stride of zero, against the same rows written out.
void check_expanded_inputs(const Case& c) {
  Case expanded = c, written_out = c;
  for (int i = 0; i < c.inputs.size(); ++i) {
    const Tensor& input = c.inputs[i];
    if (input.rank() == 0 || input.numel() == 0) continue;
    Layout layout = input.layout();
    layout.strides[0] = 0;
    expanded.inputs[i] = make_view(input, layout);
    written_out.inputs[i] = clone(expanded.inputs[i]);
  }
  if (refuses_strides(*c.op)) return;
  const Tensors got = run_case(expanded), expected = run_case(written_out);
  for (int i = 0; i < got.size(); ++i) {
    require_same_bits(c, "repeating a row by a stride of zero", got[i], expected[i]);
  }
}

void check_layouts(const OpDef& op) {
  for (const Case& c : cases_of(op, main_dtype(op))) {
    check_expanded_inputs(c);
    const Tensors expected = run_case(c);
    for (const auto& [what, change] : {std::pair{"strided input", &spread_out},
                                       std::pair{"input with reversed axes", &reversed_in_memory},
                                       std::pair{"unaligned input", &unaligned}}) {
      if (refuses_strides(op) && change != &unaligned) continue;
      Case changed = c;
      for (Tensor& input : changed.inputs) input = change(input);
      const Tensors got = run_case(changed);
      for (int i = 0; i < got.size(); ++i) {
        require_same_bits(c, what, got[i], expected[i]);
      }
    }
  }
}

// ---- Threads: the same bits for any number of them.

void check_threads(const OpDef& op) {
  const int before = thread_pool().threads();
  std::vector<Tensors> results[3];
  const int counts[] = {1, 2, 5};
  const std::vector<Case> cases = cases_of(op, main_dtype(op));
  for (int i = 0; i < 3; ++i) {
    set_num_threads(counts[i]);
    for (const Case& c : cases) results[i].push_back(run_case(c));
  }
  set_num_threads(before);
  for (size_t s = 0; s < cases.size(); ++s) {
    for (int i = 1; i < 3; ++i) {
      for (int r = 0; r < results[0][s].size(); ++r) {
        require_same_bits(cases[s],
                          counts[i] == 2 ? "running on 2 threads" : "running on 5 threads",
                          results[i][s][r], results[0][s][r]);
      }
    }
  }
}

// ---- Guards: kernels write their outputs and workspace, and nothing beside them.

class GuardedBytes {
 public:
  explicit GuardedBytes(int64_t bytes)
      : bytes_(bytes), memory_(static_cast<size_t>(bytes + 2 * kGuard + 64), kPattern) {}
  std::byte* data() { return aligned() + kGuard; }
  bool intact() {
    const std::byte* start = aligned();
    for (int64_t i = 0; i < kGuard; ++i) {
      if (start[i] != kPattern || start[kGuard + bytes_ + i] != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr std::byte kPattern{0xa5};
  std::byte* aligned() {
    return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory_.data()) + 63) &
                                        ~uintptr_t{63});
  }
  int64_t bytes_;
  std::vector<std::byte> memory_;
};

void check_guards(const OpDef& op) {
  if (!op.cpu) return;
  for (const Case& c : cases_of(op, main_dtype(op))) {
    const Tensors expected = run_case(c);
    std::vector<Tensor> before;
    SmallVector<Operand, 6> operands;
    for (const Tensor& input : c.inputs) {
      before.push_back(clone(input));
      operands.push_back({input.storage().data(), &input.layout(), input.dtype()});
    }
    std::vector<GuardedBytes> buffers;
    for (const Tensor& output : expected) buffers.emplace_back(output.bytes().value());
    for (int i = 0; i < expected.size(); ++i) {
      operands.push_back(
          {buffers[static_cast<size_t>(i)].data(), &expected[i].layout(), expected[i].dtype()});
    }
    const std::span<const Operand> all(operands);
    const auto inputs = static_cast<size_t>(c.inputs.size());
    KernelCall call{op, all.first(inputs), all.subspan(inputs), c.attrs, {}, thread_pool()};
    GuardedBytes workspace(op.workspace ? op.workspace(call) : 0);
    if (op.workspace) call.workspace = {workspace.data(), static_cast<size_t>(op.workspace(call))};
    op.cpu(call);
    for (GuardedBytes& buffer : buffers)
      check(buffer.intact(), c, ": the kernel wrote outside its output");
    check(workspace.intact(), c, ": the kernel wrote outside its workspace");
    for (int i = 0; i < c.inputs.size(); ++i)
      require_same_bits(c, "running the kernel (input)", c.inputs[i],
                        before[static_cast<size_t>(i)]);
    for (int i = 0; i < expected.size(); ++i) {
      const Tensor got = borrow_memory(buffers[static_cast<size_t>(i)].data(), expected[i].shape(),
                                       expected[i].dtype());
      require_same_bits(c, "running in guarded memory", got, expected[i]);
    }
  }
}

// ---- The null device: the same types and a price, without elements.

void check_null_device(const OpDef& op) {
  for (const Case& c : cases_of(op, main_dtype(op))) {
    const Tensors expected = run_case(c);
    Case null = c;
    for (Tensor& input : null.inputs) input = to(input, Device::null());
    Attrs attrs;
    for (const Attr& attr : c.attrs)
      attrs.add(attr.name == "device" ? Attr{"device", Device::null()} : attr);
    const Tensors got = call_op(op, null.inputs, attrs);
    for (int i = 0; i < expected.size(); ++i) {
      check(got[i].type() == expected[i].type() && got[i].device() == Device::null(), c,
            ": on the null device result ", i, " is ", describe(got[i]), " on ", got[i].device(),
            ", and ", describe(expected[i]), " on the cpu");
    }
  }
}

// ---- Bad input is refused with words, and nothing else happens.

// Whatever the shapes and dtypes of the operands, an op works or throws Error. Anything else, a broken
// invariant or (under a sanitizer) a bad access, is a fault of the op.
void check_odd_operands(const Case& c) {
  const Shape shapes[] = {{}, {0}, {1}, {3}, {2, 3}, {4, 0, 2}, {1, 1, 1, 1}, {2, 3, 4, 5}};
  const DType dtypes[] = {c.dtype, DType::boolean, DType::i64, DType::u8, DType::f16};
  for (int i = 0; i < c.inputs.size(); ++i) {
    for (const Shape& shape : shapes) {
      for (DType dtype : dtypes) {
        Case odd = c;
        odd.inputs[i] = zeros(shape, {.dtype = dtype});
        try {
          run_case(odd);
        } catch (const Error&) {
          continue;  // refused, with words
        } catch (const std::exception& error) {
          fail(odd, ": neither works nor refuses: ", error.what());
        }
      }
    }
  }
}

void check_refusals(const OpDef& op) {
  const auto refuses = [&](std::string_view what, const Tensors& inputs, const Attrs& attrs) {
    try {
      call_op(op, inputs, attrs);
    } catch (const Error& error) {
      check(std::strlen(error.what()) > 10, op.name, ": refuses ", what, " without saying why");
      return;
    }
    fail(op.name, ": accepts ", what);
  };
  for (const Case& c : cases_of(op, main_dtype(op))) {
    if (!is_large(c)) check_odd_operands(c);
  }
  for (const Case& c : cases_of(op, main_dtype(op))) {
    if (c.inputs.empty() || c.inputs[0].numel() == 0 || op.view) continue;
    if (!op.dtypes.contains(DType::i4) && c.takes_dtype[0]) {
      Tensors packed = c.inputs;
      for (int i = 0; i < packed.size(); ++i)
        packed[i] = c.takes_dtype[static_cast<size_t>(i)] ? cast(packed[i], DType::i4) : packed[i];
      refuses("packed i4 operands", packed, c.attrs);
    }
    if (c.inputs.size() > 1) {
      Tensors mixed = c.inputs;
      mixed[1] = to(mixed[1], Device::null());
      refuses("operands on two devices", mixed, c.attrs);
    }
    return;
  }
}

constexpr Check kChecks[] = {
    {"description", "says what it is, how it types, what it means, and brings samples",
     check_description},
    {"types", "gives the types that infer promises", check_types},
    {"values", "equals its definition in every dtype that it claims", check_values},
    {"layouts", "does not depend on strides, offsets or alignment", check_layouts},
    {"threads", "gives the same bits on 1, 2 and 5 threads", check_threads},
    {"guards", "writes inside its outputs and workspace only", check_guards},
    {"gradients", "has the gradient that central differences give", check_gradients},
    {"second_gradients", "has a gradient that can be differentiated again", check_second_gradients},
    {"compiled", "gives the same bits compiled, with its gradient, fused and not", check_compiled},
    {"null_device", "types and prices on the null device as on the cpu", check_null_device},
    {"refusals", "refuses operands it cannot take, with words", check_refusals},
};

}  // namespace

std::span<const Check> checks() { return kChecks; }

void run(const OpDef& op) {
  for (const Check& check : kChecks) check.run(op);
}

}  // namespace brrr::sweep
