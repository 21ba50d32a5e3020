// .npy files: what numpy writes is read, what is damaged is refused.
#include "brrr/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/io/npy_header.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The header as numpy 2 writes it for `dictionary`, then `data`.
std::string npy(std::string dictionary, std::string_view data = "") {
  dictionary.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dictionary + "\n" + std::string(data);
}

NpyHeader parse(std::string_view file) {
  return parse_npy_header(std::as_bytes(std::span(file)), "a.npy");
}
std::string fault_of(std::string_view file) {
  return error_of([&] { parse(file); });
}

TEST(Npy, HeaderIsWrittenAsNumpyDoes) {
  const std::vector<int64_t> none, one = {3}, two = {2, 5};
  EXPECT_EQ(make_npy_header("<u2", one),
            npy("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"));
  EXPECT_EQ(make_npy_header("<f4", two),
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 5), }"));
  EXPECT_EQ(make_npy_header("<f4", none),
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }"));
}

TEST(Npy, HeaderIsReadInAnyOrderAndSpacing) {
  const NpyHeader header =
      parse(npy("{ \"shape\":(2,3) , 'descr':'|u1','fortran_order':True}", "abcdef"));
  EXPECT_EQ(header.kind, 'u');
  EXPECT_EQ(header.item_bytes, 1);
  EXPECT_TRUE(header.fortran_order);
  EXPECT_THAT(header.shape, ElementsAre(2, 3));
  EXPECT_EQ(header.count, 6);
  EXPECT_EQ(header.data_offset, 128);
}

TEST(Npy, SizesAreCheckedBeforeAnythingIsRead) {
  EXPECT_THAT(fault_of(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }", "12345")),
              HasSubstr("3 elements need 6 bytes after the header; the file has 5"));
  EXPECT_THAT(fault_of(npy("{'descr': '<u2', 'fortran_order': False, "
                           "'shape': (4611686018427387904, 4), }")),
              HasSubstr("more elements than any file holds"));
  EXPECT_THAT(fault_of(npy("{'descr': '<u2', 'fortran_order': False, "
                           "'shape': (99999999999999999999,), }")),
              HasSubstr("a size below 2^63"));
  // Zero elements of a huge array are zero bytes.
  EXPECT_EQ(parse(npy("{'descr': '<u2', 'fortran_order': False, "
                      "'shape': (4611686018427387904, 4, 0), }"))
                .count,
            0);
}

TEST(Npy, DamagedHeadersAreRefused) {
  EXPECT_THAT(fault_of("PK"), HasSubstr("not a .npy file"));
  EXPECT_THAT(fault_of(std::string("\x93NUMPY\x01\x00\xFF\xFF", 10) + "{}"),
              HasSubstr("65535 bytes"));
  EXPECT_THAT(fault_of(std::string("\x93NUMPY\x09\x00\x02\x00{}", 12)), HasSubstr("version 9"));
  EXPECT_THAT(fault_of(npy("{}")), HasSubstr("all of descr, fortran_order and shape"));
  EXPECT_THAT(fault_of(npy("{'descr': '>u2', 'fortran_order': False, 'shape': (3,), }")),
              HasSubstr("elements of type \">u2\" are not read"));
  EXPECT_THAT(fault_of(npy("{'descr': '<u2', 'fortran_order': 1, 'shape': (3,), }")),
              HasSubstr("True or False"));
  EXPECT_THAT(fault_of(npy("{'descr': '<u2', 'descr': '<u2', 'shape': (3,), }")),
              HasSubstr("each once"));
}

TEST(Npy, TensorsComeBackEqual) {
  const TempFolder folder;
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::i64, DType::i32, DType::i16,
                      DType::i8, DType::u64, DType::u32, DType::u16, DType::u8, DType::boolean}) {
    const Tensor x = cast(tensor({{0, 1, 2}, {3, 4, 5}}), dtype);
    save_npy(folder / "x.npy", x);
    const Tensor back = load_npy(folder / "x.npy");
    EXPECT_EQ(back.type(), x.type());
    EXPECT_EQ(back.to_vector<double>(), x.to_vector<double>()) << to_text(dtype);
  }
}

// The bytes are those of numpy.save of [2**64 - 1, 2**63].
TEST(Npy, UnsignedNumbersOf64BitsKeepTheirUpperHalf) {
  const TempFolder folder;
  const std::vector<uint64_t> values = {UINT64_MAX, uint64_t{1} << 63};
  const auto path =
      folder.write("u.npy", npy("{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }",
                                std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) +
                                    std::string("\0\0\0\0\0\0\0\x80", 8)));
  const Tensor x = load_npy(path);
  EXPECT_EQ(x.dtype(), DType::u64);
  EXPECT_EQ(x.to_vector<uint64_t>(), values);
  save_npy(folder / "back.npy", x);
  EXPECT_EQ(load_npy(folder / "back.npy").to_vector<uint64_t>(), values);
}

TEST(Npy, ViewsAreSavedAsTheyLook) {
  const TempFolder folder;
  const Tensor x = tensor({{0, 1, 2}, {3, 4, 5}});
  save_npy(folder / "x.npy", transpose(x, 0, 1)[2]);
  EXPECT_THAT(load_npy(folder / "x.npy").to_vector<float>(), ElementsAre(2, 5));
  EXPECT_THAT(error_of([&] { save_npy(folder / "x.npy", cast(x, DType::bf16)); }),
              HasSubstr("NumPy has no dtype bf16"));
}

TEST(Npy, ColumnMajorArraysKeepTheirIndices) {
  const TempFolder folder;
  const auto path =
      folder.write("f.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }",
                                std::string("\x00\x03\x01\x04\x02\x05", 6)));
  EXPECT_THAT(load_npy(path).to_vector<int>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace brrr
