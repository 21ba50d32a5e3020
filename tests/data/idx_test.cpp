#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brrr/data/idx_file.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string idx(std::initializer_list<int> bytes) {
  std::string text;
  for (int byte : bytes) text += static_cast<char>(byte);
  return text;
}

TEST(IdxFile, IsReadWithItsShape) {
  const TempFolder folder;
  const auto path =
      folder.write("x", idx({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255}));
  const Tensor x = load_idx(path);
  EXPECT_EQ(x.type(), (TensorType{{2, 3}, DType::u8}));
  EXPECT_THAT(x.to_vector<int>(), ElementsAre(1, 2, 3, 4, 5, 255));
}

TEST(IdxFile, WhatItSaysAndWhatItHoldsMustAgree) {
  const TempFolder folder;
  const auto message = [&](std::initializer_list<int> bytes) {
    const auto path = folder.write("x", idx(bytes));
    return error_of([&] { load_idx(path); });
  };
  EXPECT_THAT(message({1, 0, 8, 1, 0, 0, 0, 1, 7}), HasSubstr("not an IDX file"));
  EXPECT_THAT(message({0, 0, 13, 1, 0, 0, 0, 1, 7}), HasSubstr("of type 13"));
  EXPECT_THAT(message({0, 0, 8, 9}), HasSubstr("9 axes"));
  EXPECT_THAT(message({0, 0, 8, 1, 0, 0, 0, 2, 7}),
              HasSubstr("1 elements are fewer than its sizes say"));
  EXPECT_THAT(message({0, 0, 8, 1, 0, 0, 0, 1, 7, 7}),
              HasSubstr("2 elements, where its sizes say 1"));
  EXPECT_THAT(message({0,   0,   8,   4,   255, 255, 255, 255, 255, 255,
                       255, 255, 255, 255, 255, 255, 255, 255, 255, 255}),
              HasSubstr("fewer than its sizes say"));
}

TEST(IdxFile, FashionMnistIsAsItsAuthorsSay) {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  EXPECT_EQ(load_idx(folder / "t10k-images-idx3-ubyte.gz").shape(), (Shape{10000, 28, 28}));
  const Tensor labels = load_idx(folder / "t10k-labels-idx1-ubyte.gz");
  std::vector<int> count(10, 0);
  for (int label : labels.to_vector<int>()) ++count.at(static_cast<size_t>(label));
  EXPECT_THAT(count, ::testing::Each(1000));  // every class has a tenth of the test images
}

}  // namespace
}  // namespace brrr
