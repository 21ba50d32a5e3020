#include "brrr/compiler/codegen/codegen_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace brrr::compiler {
namespace {

constexpr int kThreads = kernels::kTextBlock, kWarp = 32;
constexpr const char* kElements = "elements";  // the program that makes what is reduced
constexpr int kColumnRows = kThreads / kWarp;  // threads of a block that share a column
constexpr int64_t kRowOfWarp = 2048;           // up to this length a warp takes a row by itself
constexpr int64_t kRowChunk = 8192;            // what a block takes of a row at least
constexpr int64_t kColumnChunk = 64;           // and of a column

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// The largest pack of the program that divides the axis that packs lie along.
int pack_along(const kernels::ElementwiseText& program, int64_t length) {
  int pack = kernels::pack_of(program);
  while (length % pack != 0) pack /= 2;
  return pack;
}

// What all kernels of a reduction begin with.
std::string constants_text(const ReductionText& reduction, int pack) {
  return fmt::format(
      "using Sum = {};\nusing Fold = {};\nconstexpr Sum kIdentity = {};\n"
      "constexpr int kPack = {};\n\nstruct parts_args {{\n  Sum* parts;\n}};\n\n",
      kernels::compute_type_text(reduction.type), reduction.fold.functor, reduction.fold.identity,
      pack);
}

// What becomes of result i.
std::string finish_text(const ReductionText& reduction) {
  const std::string result = kernels::element_type_text(reduction.result);
  const std::string value =
      fmt::format("convert<{}>({})", result,
                  reduction.fold.divides ? fmt::format("total / Sum({})", reduction.axes.length)
                                         : std::string("total"));
  const std::string head =
      "__device__ __forceinline__ void finish(const results_args& args, int64_t i, Sum total) {\n";
  if (!reduction.after)
    return fmt::format("struct results_args {{\n  {}* into;\n}};\n\n{}  args.into[i] = {};\n}}\n\n",
                       result, head, value);
  const auto& taken = reduction.after->given;
  const std::string given = kernels::compute_type_text(taken ? taken->type : reduction.type);
  return kernels::function_text(*reduction.after, "results", 1) +
         fmt::format(
             "{0}  results<1>(args, i, results_load<1>(args, i), Pack<{1}, "
             "1>{{convert<{1}>({2})}});\n}}\n\n",
             head, given, value);
}

// A loop of one thread over its share of [begin, end) into `totals`, kPack sums at a time, in order; the loads of
// `ahead` packs are under way before the first is folded.
std::string fold_loop(int64_t step, int ahead) {
  return fmt::format(
      "  Sum totals[kPack];\n"
      "#pragma unroll\n"
      "  for (int j = 0; j < kPack; ++j) totals[j] = kIdentity;\n"
      "  const auto fold = [&](int64_t i, const {0}_loaded<kPack>& loaded) {{\n"
      "    const auto x = {0}<kPack>(args, i, loaded);\n"
      "#pragma unroll\n"
      "    for (int j = 0; j < kPack; ++j) totals[j] = Fold::of(totals[j], "
      "convert<Sum>(x.at[j]));\n"
      "  }};\n"
      "  int64_t i = begin;\n"
      "  for (; i + {2} < end; i += {3}) {{\n"
      "    {0}_loaded<kPack> loaded[{4}];\n"
      "#pragma unroll\n"
      "    for (int a = 0; a < {4}; ++a) loaded[a] = {0}_load<kPack>(args, i + a * {1});\n"
      "#pragma unroll\n"
      "    for (int a = 0; a < {4}; ++a) fold(i + a * {1}, loaded[a]);\n"
      "  }}\n"
      "  if (i < end) {{\n"  // the rest, at once as well
      "    {0}_loaded<kPack> loaded[{4}];\n"
      "#pragma unroll\n"
      "    for (int a = 0; a < {4}; ++a)\n"
      "      if (i + a * {1} < end) loaded[a] = {0}_load<kPack>(args, i + a * {1});\n"
      "#pragma unroll\n"
      "    for (int a = 0; a < {4}; ++a)\n"
      "      if (i + a * {1} < end) fold(i + a * {1}, loaded[a]);\n"
      "  }}\n",
      kElements, step, (ahead - 1) * step, ahead * step, ahead);
}

constexpr const char* kJoinPack =
    "  Sum total = totals[0];\n"
    "#pragma unroll\n"
    "  for (int j = 1; j < kPack; ++j) total = Fold::of(total, totals[j]);\n";

class ReductionWriter {
 public:
  explicit ReductionWriter(const ReductionText& reduction) : reduction_(reduction) {
    const bool rows = reduction.axes.inner == 1;
    pack_ = pack_along(reduction.program, rows ? reduction.axes.length : reduction.axes.inner);
    made_.functions = kernels::function_text(reduction.program, kElements, pack_) +
                      constants_text(reduction, pack_) + finish_text(reduction);
    if (!rows) {
      write_columns();
    } else if (reduction.axes.length <= kRowOfWarp) {
      write_short_rows();
    } else {
      write_rows();
    }
  }

  KernelText take() { return std::move(made_); }

 private:
  int64_t rows() const { return reduction_.axes.outer; }
  int64_t length() const { return reduction_.axes.length; }
  int64_t columns() const { return reduction_.axes.inner; }
  int ahead() const { return kernels::packs_ahead(reduction_.program, pack_, 4); }
  // Down a column each load is a line of memory of its own: more of them, where there is one input to wait for.
  int ahead_of_columns() const {
    return reduction_.program.inputs.size() == 1
               ? kernels::packs_ahead(reduction_.program, pack_, 8, 128)
               : ahead();
  }

  // A function that gives results, or sums of parts that another one joins.
  void begin_reduce(int64_t parts) {
    begin_function("reduce", fmt::format("{}_args", kElements), "args",
                   parts > 1 ? "parts_args" : "results_args", parts > 1 ? "into" : "results");
  }
  void begin_join() { begin_function("join", "parts_args", "from", "results_args", "results"); }
  void begin_function(std::string_view name, std::string_view first_type, std::string_view first,
                      std::string_view more_type, std::string_view more) {
    made_.functions += fmt::format(
        "__device__ __forceinline__ void {}(unsigned block, const {}& {}, const {}& {}) {{\n", name,
        first_type, first, more_type, more);
  }
  static std::string give_text(int64_t parts, const std::string& place) {
    return parts > 1 ? fmt::format("into.parts[{}] = total", place)
                     : fmt::format("finish(results, {}, total)", place);
  }
  static KernelPointer parts_pointer() { return {KernelPointer::From::workspace, 0}; }
  void add_reduce(int64_t blocks, int64_t parts) {
    made_.launches.push_back(
        {.function = "reduce",
         .first = fmt::format("{}_args", kElements),
         .more = parts > 1 ? "parts_args" : "results_args",
         .blocks = blocks,
         .pointers = reduction_.pointers,
         .more_pointers = parts > 1 ? std::vector{parts_pointer()} : reduction_.after_pointers});
  }
  void add_join(int64_t blocks) {
    made_.launches.push_back({.function = "join",
                              .first = "parts_args",
                              .more = "results_args",
                              .blocks = blocks,
                              .pointers = {parts_pointer()},
                              .more_pointers = reduction_.after_pointers});
  }

  // A warp for each row.
  void write_short_rows() {
    const int64_t in_block = kThreads / kWarp;
    begin_reduce(1);
    made_.functions += fmt::format(
        "  const int64_t row = (int64_t)block * {} + threadIdx.x / 32;\n"
        "  if (row >= {}) return;\n"
        "  const int64_t begin = row * {} + threadIdx.x % 32 * kPack, end = (row + 1) * {};\n",
        in_block, rows(), length(), length());
    made_.functions += fold_loop(int64_t{kWarp} * pack_, ahead());
    made_.functions += kJoinPack;
    made_.functions +=
        "  total = fold_warp<Fold>(total);\n"
        "  if (threadIdx.x % 32 == 0) finish(results, row, total);\n}\n";
    add_reduce(ceil_div(rows(), in_block), 1);
  }

  // A block for each row, or several that each take a part.
  void write_rows() {
    const int64_t wanted =
        std::clamp<int64_t>(reduction_.enough_blocks / rows(), 1, ceil_div(length(), kRowChunk));
    const int64_t chunk = round_up(ceil_div(length(), wanted), int64_t{kThreads} * pack_);
    const int64_t parts = ceil_div(length(), chunk);
    begin_reduce(parts);
    made_.functions += fmt::format(
        "  const int64_t row = block / {0}, part = block % {0};\n"
        "  const int64_t begin = row * {1} + part * {2} + threadIdx.x * kPack;\n"
        "  const int64_t end = row * {1} + (part + 1 == {0} ? {1} : (part + 1) * {2});\n",
        parts, length(), chunk);
    made_.functions += fold_loop(int64_t{kThreads} * pack_, ahead());
    made_.functions += kJoinPack;
    made_.functions += fmt::format(
        "  total = fold_block<Fold, {}>(total);\n"
        "  if (threadIdx.x == 0) {};\n}}\n",
        kThreads, give_text(parts, "block"));
    add_reduce(rows() * parts, parts);
    if (parts > 1) write_joined_rows(parts);
  }

  void write_joined_rows(int64_t parts) {
    made_.workspace_bytes = rows() * parts * compute_bytes(reduction_.type);
    begin_join();
    made_.functions += fmt::format(
        "  Sum total = kIdentity;\n"
        "  for (int part = threadIdx.x; part < {1}; part += {0})\n"
        "    total = Fold::of(total, from.parts[(int64_t)block * {1} + part]);\n"
        "  total = fold_block<Fold, {0}>(total);\n"
        "  if (threadIdx.x == 0) finish(results, block, total);\n}}\n\n",
        kThreads, parts);
    add_join(rows());
  }

  // Warps lie along the columns, 8 of them share 32 packs of columns.
  void write_columns() {
    const int64_t groups = ceil_div(columns(), int64_t{kWarp} * pack_);
    const int64_t wanted = std::clamp<int64_t>(reduction_.enough_blocks / (rows() * groups), 1,
                                               ceil_div(length(), kColumnChunk));
    const int64_t chunk = ceil_div(length(), wanted), parts = ceil_div(length(), chunk);
    begin_reduce(parts);
    made_.functions += fmt::format(
        "  __shared__ Sum of_rows[{0}][32][kPack];\n"
        "  const int lane = threadIdx.x % 32, y = threadIdx.x / 32;\n"
        "  const int64_t group = block % {1}, part = block / {1} % {2};\n"
        "  const int64_t outer = block / {3};\n"
        "  const int64_t column = (group * 32 + lane) * kPack;\n"
        "  const int64_t last = part + 1 == {2} ? {4} : (part + 1) * {5};\n"
        "  const int64_t begin = (outer * {4} + part * {5} + y) * {6} + column;\n"
        "  const int64_t end = column < {6} ? (outer * {4} + last) * {6} : 0;\n",
        kColumnRows, groups, parts, groups * parts, length(), chunk, columns());
    made_.functions += fold_loop(kColumnRows * columns(), ahead_of_columns());
    made_.functions += fmt::format(
        "#pragma unroll\n"
        "  for (int j = 0; j < kPack; ++j) of_rows[y][lane][j] = totals[j];\n"
        "  __syncthreads();\n"
        "  for (int c = threadIdx.x; c < 32 * kPack; c += {1}) {{\n"  // neighbours store neighbours
        "    const int64_t place = group * 32 * kPack + c;\n"
        "    if (place >= {0}) return;\n"
        "    Sum total = of_rows[0][c / kPack][c % kPack];\n"
        "#pragma unroll\n"
        "    for (int row = 1; row < {2}; ++row)\n"
        "      total = Fold::of(total, of_rows[row][c / kPack][c % kPack]);\n"
        "    {3};\n"
        "  }}\n}}\n",
        columns(), kThreads, kColumnRows,
        give_text(parts, fmt::format("(outer * {} + part) * {} + place", parts, columns())));
    add_reduce(rows() * parts * groups, parts);
    if (parts > 1) write_joined_columns(parts);
  }

  // A block has 32 columns; each of its warps joins a share of the parts in order, then shares are joined in order.
  void write_joined_columns(int64_t parts) {
    made_.workspace_bytes = rows() * parts * columns() * compute_bytes(reduction_.type);
    begin_join();
    const int64_t results = rows() * columns();
    made_.functions += fmt::format(
        "  __shared__ Sum of_shares[{0}][32];\n"
        "  const int lane = threadIdx.x % 32, y = threadIdx.x / 32;\n"
        "  const int64_t i = (int64_t)block * 32 + lane;\n"
        "  const int last = min((y + 1) * {2}, {1});\n"
        "  Sum total = kIdentity;\n"
        "  if (i < {3}) {{\n"
        "    const Sum* mine = from.parts + i / {4} * {5} + i % {4};\n"
        "#pragma unroll 8\n"  // loads under way at once; the order of additions stays
        "    for (int part = y * {2}; part < last; ++part)\n"
        "      total = Fold::of(total, mine[part * {4}]);\n"
        "  }}\n"
        "  of_shares[y][lane] = total;\n"
        "  __syncthreads();\n"
        "  if (y > 0 || i >= {3}) return;\n"
        "#pragma unroll\n"
        "  for (int share = 1; share < {0}; ++share)\n"
        "    total = Fold::of(total, of_shares[share][lane]);\n"
        "  finish(results, i, total);\n}}\n\n",
        kColumnRows, parts, ceil_div(parts, kColumnRows), results, columns(), parts * columns());
    add_join(ceil_div(results, kWarp));
  }

  const ReductionText& reduction_;
  int pack_ = 1;
  KernelText made_;
};

}  // namespace

std::optional<ReducedAxes> reduced_axes(const Shape& shape, const Attrs& attrs) {
  const Axes& reduced = attrs.list("axes");
  ReducedAxes axes;
  bool inside = false, behind = false;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    if (reduced.contains(axis)) {
      if (behind) return {};
      inside = true;
      axes.length *= shape[axis];
    } else {
      behind = inside;
      (behind ? axes.inner : axes.outer) *= shape[axis];
    }
  }
  return axes;
}

std::optional<FoldText> fold_text(const OpDef& op, ComputeType type) {
  const auto number = [&](int64_t value) {
    return is_integer(type) ? kernels::integer_text(value, type)
                            : kernels::number_text(static_cast<double>(value), type);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const IntLimits limits = iinfo(type == ComputeType::u64 ? DType::u64 : DType::i64);
  switch (op.fold) {
    case Fold::sum: return FoldText{"functors::Add", number(0), false};
    case Fold::mean: return FoldText{"functors::Add", number(0), true};
    case Fold::product: return FoldText{"functors::Mul", number(1), false};
    case Fold::max:
      return FoldText{"functors::Maximum",
                      is_integer(type) ? kernels::integer_text(limits.min, type)
                                       : kernels::number_text(-kInfinity, type),
                      false};
    case Fold::min:
      return FoldText{"functors::Minimum",
                      is_integer(type)
                          ? kernels::integer_text(static_cast<int64_t>(limits.max), type)
                          : kernels::number_text(kInfinity, type),
                      false};
    case Fold::none: break;
  }
  return {};
}

KernelText reduction_text(const ReductionText& reduction) {
  return ReductionWriter(reduction).take();
}

}  // namespace brrr::compiler
