#include "brrr/kernels/cuda/codegen/elementwise_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "brrr/kernels/cuda/codegen/text_access.h"

namespace brrr::kernels {
namespace {

constexpr int kMaxPack = 8;  // more elements a thread cost more registers than they save accesses

// Whether 32 bits hold every index and position; they divide faster.
bool is_small(const ElementwiseText& program) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max() / 2;
  if (program.count() > limit) return false;
  const auto reach = [&](const TextOperand& operand) {
    int64_t last = 0;
    for (int axis = 0; axis < operand.layout.rank(); ++axis)
      last += std::abs(operand.layout.strides[axis]) * operand.layout.shape[axis];
    return last;
  };
  for (const std::vector<TextOperand>* all : {&program.inputs, &program.outputs}) {
    for (const TextOperand& operand : *all) {
      if (reach(operand) > limit) return false;
    }
  }
  return true;
}

bool has_negative_stride(const ElementwiseText& program) {
  for (const std::vector<TextOperand>* all : {&program.inputs, &program.outputs}) {
    for (const TextOperand& operand : *all) {
      for (int64_t stride : operand.layout.strides) {
        if (stride < 0) return true;
      }
    }
  }
  return false;
}

std::string index_type(const ElementwiseText& program) {
  if (has_negative_stride(program)) return "int64_t";
  return is_small(program) ? "uint32_t" : "int64_t";
}

std::string load_placed_text(const TextOperand& operand, const Access& access, size_t i) {
  const std::string type = element_type_text(operand.dtype);
  const int64_t shift = operand.placed.start * operand.layout.strides[operand.placed.axis];
  if (access.kind == Access::Kind::packed)
    return fmt::format(
        "  loaded.a{0} = {1} ? load_pack<kPack>(args.in{0} + ({2} - {3})) : Pack<{4}, "
        "kPack>{{}};\n",
        i, inside_text(operand, "first"), position_text(access.nest, "first"), shift, type);
  return fmt::format(
      "#pragma unroll\n"
      "  for (int j = 0; j < kPack; ++j)\n"
      "    loaded.a{0}.at[j] = {1} ? args.in{0}[{2} - {3}] : {4}{{}};\n",
      i, inside_text(operand, "(first + j)"), position_text(access.nest, "(first + j)"), shift,
      type);
}

bool is_one_element(Access::Kind kind) {
  return kind == Access::Kind::constant || kind == Access::Kind::repeated;
}

std::string load_text(const ElementwiseText& program, size_t i, int pack) {
  const TextOperand& operand = program.inputs[i];
  const Access access = access_of(operand, program.shape, pack);
  if (operand.placed.is_used()) return load_placed_text(operand, access, i);
  switch (access.kind) {
    case Access::Kind::constant: return fmt::format("  loaded.a{0} = *args.in{0};\n", i);
    case Access::Kind::packed:
      return fmt::format("  loaded.a{0} = load_pack<kPack>(args.in{0} + {1});\n", i,
                         position_text(access.nest, "first"));
    case Access::Kind::repeated:
      return fmt::format("  loaded.a{0} = args.in{0}[{1}];\n", i,
                         position_text(access.nest, "first"));
    case Access::Kind::single: break;
  }
  return fmt::format(
      "#pragma unroll\n"
      "  for (int j = 0; j < kPack; ++j) loaded.a{0}.at[j] = args.in{0}[{1}];\n",
      i, position_text(access.nest, "(first + j)"));
}

// What a pack needs from memory as a struct `<name>_loaded`, and `<name>_load` that fetches it.
std::string loads_text(const ElementwiseText& program, const std::string& name, int pack) {
  std::string text = fmt::format("template <int kPack>\nstruct {}_loaded {{\n", name);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TextOperand& operand = program.inputs[i];
    const std::string type = element_type_text(operand.dtype);
    const bool is_one = is_one_element(access_of(operand, program.shape, pack).kind);
    text += fmt::format("  {} a{};\n", is_one ? type : fmt::format("Pack<{}, kPack>", type), i);
  }
  text += fmt::format(
      "}};\n\ntemplate <int kPack>  // elements [first, first + kPack) of {0}\n"
      "__device__ __forceinline__ {1}_loaded<kPack> {1}_load(const {1}_args& args, {2} first) {{\n"
      "  {1}_loaded<kPack> loaded;\n",
      to_text(program.shape), name, index_type(program));
  for (size_t i = 0; i < program.inputs.size(); ++i) text += load_text(program, i, pack);
  return text + "  return loaded;\n}\n\n";
}

std::string store_text(const ElementwiseText& program, size_t i, int pack) {
  const TextOperand& operand = program.outputs[i];
  const Access access = access_of(operand, program.shape, pack);
  if (access.kind == Access::Kind::packed || (access.nest.is_constant(0) && program.count() == 1))
    return fmt::format("  store_pack(args.out{} + {}, y{});\n", i,
                       position_text(access.nest, "first"), i);
  return fmt::format(
      "#pragma unroll\n"
      "  for (int j = 0; j < kPack; ++j) args.out{}[{}] = y{}.at[j];\n",
      i, position_text(access.nest, "(first + j)"), i);
}

bool is_in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The words x0, x1, ... of an expression by the values that stand for them; 0x1p+0 is another word.
std::string with_values(std::string_view expression, std::span<const int> values) {
  std::string text;
  for (size_t at = 0; at < expression.size();) {
    size_t end = at;
    while (end < expression.size() && is_in_word(expression[end])) ++end;
    const std::string_view word = expression.substr(at, end - at);
    const auto operand = std::find_if(values.begin(), values.end(), [&](const int& value) {
      return word == fmt::format("x{}", &value - values.data());
    });
    if (operand != values.end()) {
      text += fmt::format("v{}", *operand);
    } else {
      text += word;
    }
    if (end < expression.size()) text += expression[end++];
    at = end;
  }
  return text;
}

}  // namespace

std::string element_type_text(DType dtype) {
  switch (dtype) {
    case DType::f64: return "double";
    case DType::f32: return "float";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f8e4m3: return "f8e4m3";
    case DType::f8e5m2: return "f8e5m2";
    case DType::i64: return "int64_t";
    case DType::i32: return "int32_t";
    case DType::i16: return "int16_t";
    case DType::i8: return "int8_t";
    case DType::u64: return "uint64_t";
    case DType::u32: return "uint32_t";
    case DType::u16: return "uint16_t";
    case DType::u8: return "uint8_t";
    case DType::boolean: return "bool";
    case DType::i4:
    case DType::u4: break;
  }
  fail(to_text(dtype),
       " packs two values a byte and is for storage only; cast it to another dtype first");
}

std::string compute_type_text(ComputeType type) { return element_type_text(natural_dtype(type)); }

std::string integer_text(int64_t value, ComputeType type) {
  if (type == ComputeType::u64) return fmt::format("{}ul", static_cast<uint64_t>(value));
  if (value == std::numeric_limits<int64_t>::min()) return "(-0x7fffffffffffffffl - 1)";
  return fmt::format("{}l", value);
}

std::string number_text(double value, ComputeType type) {
  invariant(!is_integer(type), "integers are written by integer_text");
  const std::string name = compute_type_text(type);
  if (std::isnan(value)) return fmt::format("math::Format<{}>::nan", name);
  if (std::isinf(value))
    return fmt::format("{}math::Format<{}>::infinity", value < 0 ? "-" : "", name);
  return type == ComputeType::f32 ? fmt::format("{:a}f", static_cast<float>(value))
                                  : fmt::format("{:a}", value);
}

std::string statement_text(const OpDef& op, const Attrs& attrs, ComputeType type, int result,
                           std::span<const int> values) {
  invariant(op.expression != nullptr, op.name, " has no text for generated kernels");
  return fmt::format("const {} v{} = {};", compute_type_text(type), result,
                     with_values(op.expression(attrs, type), values));
}

int pack_of(const ElementwiseText& program) {
  int64_t smallest = kAccessBytes;
  const auto look = [&](const TextOperand& operand) {
    const LoopNest nest = nest_of(operand, program.shape);
    if (!nest.is_constant(0) && can_pack(operand, nest, 1))
      smallest = std::min<int64_t>(smallest, bit_size(operand.dtype) / 8);
  };
  for (const TextOperand& operand : program.inputs) look(operand);
  for (const TextOperand& operand : program.outputs) look(operand);
  int64_t pack = std::min<int64_t>(kMaxPack, kAccessBytes / smallest);
  // Small tensors need threads more than wide accesses.
  constexpr int64_t kEnoughThreads = 64 * kTextBlock;
  while (pack > 1 && program.count() / pack < kEnoughThreads) pack /= 2;
  return static_cast<int>(pack);
}

std::string function_text(const ElementwiseText& program, const std::string& name, int pack) {
  std::string text = fmt::format("struct {}_args {{\n", name);
  for (size_t i = 0; i < program.inputs.size(); ++i)
    text += fmt::format("  const {}* in{};\n", element_type_text(program.inputs[i].dtype), i);
  for (size_t i = 0; i < program.outputs.size(); ++i)
    text += fmt::format("  {}* out{};\n", element_type_text(program.outputs[i].dtype), i);
  text += "};\n\n";
  text += loads_text(program, name, pack);
  const std::string captured =
      program.captured ? fmt::format("Pack<{}, kPack>", compute_type_text(program.captured->type))
                       : "void";
  text += fmt::format(
      "template <int kPack>\n"
      "__device__ __forceinline__ {0} {1}(const {1}_args& args, {2} first,\n"
      "    const {1}_loaded<kPack>& loaded{3}) {{\n",
      captured, name, index_type(program),
      program.given
          ? fmt::format(", const Pack<{}, kPack>& given", compute_type_text(program.given->type))
          : std::string());
  for (size_t i = 0; i < program.stores.size(); ++i) {
    const auto operand = static_cast<size_t>(program.stores[i].operand);
    text += fmt::format("  Pack<{}, kPack> y{};\n",
                        element_type_text(program.outputs[operand].dtype), operand);
  }
  if (program.captured) text += fmt::format("  {} captured;\n", captured);
  text += "#pragma unroll\n  for (int j = 0; j < kPack; ++j) {\n";
  if (program.given)
    text += fmt::format("    const {} v{} = given.at[j];\n", compute_type_text(program.given->type),
                        program.given->value);
  for (const ElementwiseText::Transfer& load : program.loads) {
    const TextOperand& operand = program.inputs[static_cast<size_t>(load.operand)];
    const bool is_one = is_one_element(access_of(operand, program.shape, pack).kind);
    const std::string type = compute_type_text(load.type);
    text += fmt::format("    const {} v{} = convert<{}>(loaded.a{}{});\n", type, load.value, type,
                        load.operand, is_one ? "" : ".at[j]");
  }
  for (const std::string& statement : program.statements)
    text += fmt::format("    {}\n", statement);
  for (const ElementwiseText::Transfer& store : program.stores)
    text += fmt::format(
        "    y{}.at[j] = convert<{}>(v{});\n", store.operand,
        element_type_text(program.outputs[static_cast<size_t>(store.operand)].dtype), store.value);
  if (program.captured) text += fmt::format("    captured.at[j] = v{};\n", program.captured->value);
  text += "  }\n";
  for (const ElementwiseText::Transfer& store : program.stores)
    text += store_text(program, static_cast<size_t>(store.operand), pack);
  if (program.captured) text += "  return captured;\n";
  return text + "}\n\n";
}

int packs_ahead(const ElementwiseText& program, int pack, int most, int64_t most_bytes) {
  int64_t bytes = 0;
  for (const TextOperand& operand : program.inputs) {
    if (!is_one_element(access_of(operand, program.shape, pack).kind))
      bytes += pack * bit_size(operand.dtype) / 8;
  }
  int packs = 1;
  while (packs < most && 2 * packs * bytes <= most_bytes) packs *= 2;
  return packs;
}

std::string source_head(const std::string& comment) {
  return fmt::format(
      "// {}\n"
      "#include \"brrr/kernels/scalar/activation_functors.h\"\n"
      "#include \"brrr/kernels/scalar/binary_functors.h\"\n"
      "#include \"brrr/kernels/cuda/codegen/element_access.h\"\n"
      "#include \"brrr/kernels/cuda/codegen/block_reduce.h\"\n"
      "#include \"brrr/kernels/scalar/unary_functors.h\"\n\n"
      "using namespace brrr;\n"
      "using namespace brrr::device;\n\n",
      comment);
}

namespace {

// Packs of a thread of an elementwise kernel, a block's threads apart: two where threads are plenty.
int packs_of_thread(const ElementwiseText& program, int pack) {
  constexpr int64_t kPlenty = int64_t{1} << 20;
  return program.count() / pack < kPlenty ? 1 : packs_ahead(program, pack, 2);
}

}  // namespace

int64_t blocks_of(const ElementwiseText& program, int pack) {
  const int64_t packs = (program.count() + pack - 1) / pack,
                of_block = int64_t{kTextBlock} * packs_of_thread(program, pack);
  return (packs + of_block - 1) / of_block;
}

std::string block_text(const ElementwiseText& program, const std::string& name, int pack,
                       const std::string& block, const std::string& args) {
  const std::string index = index_type(program);
  const int packs = packs_of_thread(program, pack);
  const int64_t count = program.count(), whole = count / pack * pack;
  const auto run = [&](int of_pack, std::string_view at) {
    return fmt::format("{0}<{1}>({2}, {3}, {0}_load<{1}>({2}, {3}));\n", name, of_pack, args, at);
  };
  std::string text = fmt::format("const {0} first = (({0})({1}) * {2} + threadIdx.x) * {3};\n",
                                 index, block, kTextBlock * packs, pack);
  std::string together = run(pack, "first");
  if (packs == 2) {  // the second pack is under way before the first is needed
    text += fmt::format("const {} second = first + {};\n", index, kTextBlock * pack);
    together = fmt::format(
        "const auto a = {0}_load<{1}>({2}, first), b = {0}_load<{1}>({2}, second);\n"
        "{0}<{1}>({2}, first, a);\n{0}<{1}>({2}, second, b);\n",
        name, pack, args);
  }
  if (count % (int64_t{pack} * kTextBlock * packs) == 0) return text + together;
  const auto alone = [&](std::string_view at) {
    std::string one = fmt::format("if ({0} + {1} <= {2}) {3}", at, pack, whole, run(pack, at));
    if (whole != count)
      one += fmt::format("else for ({0} i = {1}; i < {2}; ++i) {3}", index, at, count, run(1, "i"));
    return one;
  };
  if (packs == 1) return text + alone("first");
  return text + fmt::format("if (second + {} <= {}) {{\n{}}} else {{\n{}{}}}\n", pack, whole,
                            together, alone("first"), alone("second"));
}

}  // namespace brrr::kernels
