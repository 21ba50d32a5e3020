#include "brrr/io/npy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "brrr/io/atomic_file.h"
#include "brrr/io/mapped_file.h"
#include "brrr/io/npy_header.h"
#include "brrr/ops/create/copy.h"

namespace brrr {
namespace {

struct TypeName {
  DType dtype;
  std::string_view descr;
};
constexpr std::array kTypeNames = {
    TypeName{DType::f64, "<f8"}, TypeName{DType::f32, "<f4"}, TypeName{DType::f16, "<f2"},
    TypeName{DType::i64, "<i8"}, TypeName{DType::i32, "<i4"}, TypeName{DType::i16, "<i2"},
    TypeName{DType::i8, "|i1"},  TypeName{DType::u64, "<u8"}, TypeName{DType::u32, "<u4"},
    TypeName{DType::u16, "<u2"}, TypeName{DType::u8, "|u1"},  TypeName{DType::boolean, "|b1"}};

DType dtype_of_npy(const NpyHeader& header, const std::string& name) {
  for (const TypeName& type : kTypeNames) {
    if (type.descr[1] == header.kind && type.descr[2] - '0' == header.item_bytes) return type.dtype;
  }
  fail(name, ": brrr has no dtype for elements of kind '", header.kind, "' and ", header.item_bytes,
       " bytes; save it as another number type");
}

}  // namespace

Tensor load_npy(const std::filesystem::path& path) {
  const MappedFile file(path);
  const NpyHeader header = parse_npy_header(file.bytes(), file.name());
  const DType dtype = dtype_of_npy(header, file.name());
  check(header.shape.size() <= kMaxRank, file.name(), ": ", header.shape.size(),
        " axes; tensors have at most ", kMaxRank);
  // Column-major elements are those of the transposed array, row by row.
  std::vector<int64_t> stored = header.shape;
  if (header.fortran_order) std::ranges::reverse(stored);
  Shape shape;
  for (int64_t size : stored) shape.push_back(size);
  CategoryScope scope(Category::data);
  Tensor x = empty(shape, dtype);
  if (header.count > 0)
    std::memcpy(x.storage().data(), file.bytes().data() + header.data_offset,
                static_cast<size_t>(x.bytes().value()));
  if (dtype == DType::boolean) {  // whatever is not zero is true; a bool may hold nothing else
    for (std::byte& truth : std::span(x.storage().data(), static_cast<size_t>(header.count)))
      truth = static_cast<std::byte>(truth != std::byte{0});
  }
  if (!header.fortran_order) return x;
  Axes reversed;
  for (int axis = shape.size() - 1; axis >= 0; --axis) reversed.push_back(axis);
  return make_view(x, permute_layout(x.layout(), reversed));
}

void save_npy(const std::filesystem::path& path, const Tensor& x) {
  const auto* type = std::ranges::find(kTypeNames, x.dtype(), &TypeName::dtype);
  check(type != kTypeNames.end(), "save_npy: NumPy has no dtype ", x.dtype(),
        "; cast to f32 first");
  const Tensor rows = contiguous(x);
  const std::string header =
      make_npy_header(type->descr, std::span(x.shape().begin(), x.shape().end()));
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(header)));
  const auto* first =
      static_cast<const std::byte*>(static_cast<const void*>(rows.storage().data())) +
      storage_bytes(rows.dtype(), rows.offset());
  file.write({first, static_cast<size_t>(rows.bytes().value())});
  file.commit();
}

}  // namespace brrr
