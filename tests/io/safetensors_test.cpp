#include "brrr/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/random/random.h"
#include "brrr/ops/view/views.h"
#include "support/error_of.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Safetensors : public testing::Test {
 protected:
  void write(const std::string& header, const std::string& data) const {
    std::ofstream file(path_, std::ios::binary);
    const auto length = static_cast<uint64_t>(header.size());
    file.write(reinterpret_cast<const char*>(&length), sizeof(length));
    file << header << data;
  }
  std::string refusal() const {
    return error_of([&] { const SafetensorsFile file(path_); });
  }

  TempFolder folder_;
  fs::path path_ = folder_ / "test.safetensors";
};

TEST_F(Safetensors, EveryDTypeComesBack) {
  std::vector<NamedTensor> tensors;
  for (DType dtype : kAllDTypes) {
    if (!is_packed(dtype)) tensors.push_back({to_text(dtype), cast(arange(6), dtype)});
  }
  tensors.push_back({"scalar", full({}, 3.5)});
  tensors.push_back({"empty", zeros({0, 3})});
  tensors.push_back({"view", transpose(normal({3, 4}, RandomKey{.seed = 1}))});
  save_safetensors(path_, tensors, {{"step", "100"}});
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata().at("step"), "100");
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (const NamedTensor& saved : tensors) {
    const Tensor loaded = file.load(saved.name);
    EXPECT_EQ(loaded.type(), saved.tensor.type()) << saved.name;
    EXPECT_EQ(loaded.to_vector<double>(), saved.tensor.to_vector<double>()) << saved.name;
  }
}

TEST_F(Safetensors, UnsignedNumbersOf64BitsKeepTheirUpperHalf) {
  const std::vector<uint64_t> values = {UINT64_MAX, uint64_t{1} << 63};
  save_safetensors(path_, {{"ids", from_values(values, {2})}});
  const Tensor loaded = SafetensorsFile(path_).load("ids");
  EXPECT_EQ(loaded.dtype(), DType::u64);
  EXPECT_EQ(loaded.to_vector<uint64_t>(), values);
}

TEST_F(Safetensors, LoadsIntoTensorsThatExist) {
  save_safetensors(path_, {{"w", tensor({1, 2, 3})}});
  const SafetensorsFile file(path_);
  const Tensor target = zeros({3}, {.dtype = DType::f64});
  file.load_into("w", target);
  EXPECT_EQ(target.to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_THAT(error_of([&] { file.load_into("w", zeros({4})); }), HasSubstr("tensor \"w\""));
  EXPECT_THAT(error_of([&] { file.load("v"); }), HasSubstr("has no tensor \"v\""));
}

TEST_F(Safetensors, NamesAreUnique) {
  EXPECT_THAT(error_of([&] {
                save_safetensors(path_, {{"w", ones({1})}, {"w", ones({1})}});
              }),
              HasSubstr("is taken"));
}

TEST_F(Safetensors, RefusesWhatDoesNotFit) {
  const std::string eight(8, 'x');
  const auto one = [](const std::string& dtype, const std::string& shape,
                      const std::string& offsets) {
    return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  write(one("F32", "[2]", "[0,8]"), eight);
  EXPECT_EQ(SafetensorsFile(path_).load("w").numel(), 2);
  write(one("F32", "[2]", "[0,12]"), eight);
  EXPECT_THAT(refusal(), HasSubstr("cut short"));
  write(one("F32", "[3]", "[0,8]"), eight);
  EXPECT_THAT(refusal(), HasSubstr("has 8 B"));
  write(one("F32", "[4611686018427387904,4]", "[0,8]"), eight);
  EXPECT_NE(refusal(), "");
  write(one("Q4", "[2]", "[0,8]"), eight);
  EXPECT_THAT(refusal(), HasSubstr("\"Q4\""));
  write(one("F32", "[-2]", "[0,8]"), eight);
  EXPECT_THAT(refusal(), HasSubstr("no count"));
  write(one("F32", "[1]", "[4,8]"), eight);
  EXPECT_THAT(refusal(), HasSubstr("begins at byte"));
  write(one("F32", "[1]", "[0,4]"), eight);
  EXPECT_THAT(refusal(), HasSubstr("behind its last tensor"));
  write("[1,2", eight);
  EXPECT_THAT(refusal(), HasSubstr("no JSON object"));
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  save_safetensors(path_, {{"a", ones({3})}, {"b", ones({2, 2})}});
  const auto whole = fs::file_size(path_);
  for (uintmax_t size = whole; size-- > 0;) {
    fs::resize_file(path_, size);
    EXPECT_NE(refusal(), "") << size << " of " << whole << " B";
  }
}

TEST(SafetensorsRealFiles, ReadsHuggingFacesGpt2) {
  const auto path = shared_data("ckpt/gpt2-tiny-random/model.safetensors");
  if (!path) GTEST_SKIP() << "there is no gpt2-tiny-random here";
  const SafetensorsFile file(*path);
  ASSERT_NE(file.find("transformer.wte.weight"), nullptr);
  EXPECT_EQ(file.load("transformer.wte.weight").shape(), (Shape{1000, 32}));
}

}  // namespace
}  // namespace brrr
