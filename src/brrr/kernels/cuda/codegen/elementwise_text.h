// Elementwise programs as CUDA C++ text. A program is a list of statements over numbered values, v0, v1, ...,
// with what is loaded before them and stored behind them; sizes, strides and dtypes are constants in the text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "brrr/graph/op_def.h"

namespace brrr::kernels {

std::string element_type_text(DType dtype);               // "float", "bf16", ...
std::string compute_type_text(ComputeType type);          // "float", "double", "int64_t"
std::string number_text(double value, ComputeType type);  // exact, infinite and NaN included
std::string integer_text(int64_t value, ComputeType type);

struct TextOperand {
  Layout layout;
  DType dtype;
  int64_t alignment = 16;  // of the first element's address, in bytes
  // Only indices [start, stop) of this axis are in memory, the first element being that of `start`; the
  // others are zero.
  struct Placed {
    int axis = -1;  // all are in memory
    int64_t start = 0, stop = 0;
    bool is_used() const { return axis >= 0; }
  } placed = {};
};

struct ElementwiseText {
  struct Transfer {
    int operand;  // of inputs or outputs
    int value;
    ComputeType type;
  };
  Shape shape;
  std::vector<TextOperand> inputs, outputs;
  std::vector<Transfer> loads, stores;
  std::vector<std::string> statements;
  std::optional<Transfer> given, captured;  // by, or to, the kernel around this program

  int64_t count() const { return numel(shape); }
};

// "const float v3 = functors::Mul::of(v0, v1);" from an op's text for x0, x1, ...
std::string statement_text(const OpDef& op, const Attrs& attrs, ComputeType type, int result,
                           std::span<const int> values);

// Elements that one thread takes at a time, so that most accesses have 16 bytes: a power of two.
int pack_of(const ElementwiseText& program);

// The program as a struct of pointers `<name>_args`, a struct `<name>_loaded` of what a pack needs from memory, and
//   template <int kPack> <name>_loaded<kPack> <name>_load(args, first)
//   template <int kPack> <void, or Pack<T, kPack> where something is captured> <name>(args, first, loaded)
// with the given values as a fourth parameter where there are some; for the elements [first, first + kPack). Apart,
// so that the loads of several packs are under way before the first is stored. `pack` is the largest kPack that
// is asked for; packs begin at multiples of themselves.
std::string function_text(const ElementwiseText& program, const std::string& name, int pack);

// How many packs a thread should load before it works on the first, at most so many, and so many bytes.
int packs_ahead(const ElementwiseText& program, int pack, int most, int64_t most_bytes = 64);

// What every generated source begins with, behind a line that says what it is.
std::string source_head(const std::string& comment);

inline constexpr int kTextBlock = 256;  // threads

// Blocks that cover a program, and the body of a block: `block` is an expression for its number.
int64_t blocks_of(const ElementwiseText& program, int pack);
std::string block_text(const ElementwiseText& program, const std::string& name, int pack,
                       const std::string& block, const std::string& args);

}  // namespace brrr::kernels
