// brrr.h as a program from outside meets it: what it names is there, and the whole namespace can be used
// beside std's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "brrr/brrr.h"

using namespace brrr;  // NOLINT: this is what programs write
using namespace std;   // NOLINT

TEST(PublicHeader, ReadsAndWritesArrays) {
  const filesystem::path folder =
      filesystem::temp_directory_path() / ("brrr_public_header_" + to_string(getpid()));
  filesystem::create_directories(folder);
  const Tensor x = tensor({{1, 2}, {3, 4}}, DType::f64);
  save_npy(folder / "x.npy", x);
  save_safetensors(folder / "x.safetensors", {{"x", x}});
  EXPECT_EQ(load_npy(folder / "x.npy").to_vector<double>(), x.to_vector<double>());
  EXPECT_EQ(SafetensorsFile(folder / "x.safetensors").load("x").to_vector<double>(),
            x.to_vector<double>());
  filesystem::remove_all(folder);
}

TEST(PublicHeader, TrainsALayerAndPrintsIt) {
  Random random(1);
  const Linear layer(2, 1, random);
  Sgd optimizer(layer.named_parameters(), {.momentum = 0});
  const Tensor x = tensor({{1, 0}, {0, 1}}), y = tensor({{2}, {3}});
  auto step = runtime::compile([&](Tensor in, Tensor out) {
    const Tensor loss = mse(layer(in), out);
    optimizer.update(grad(loss, optimizer.parameters()), tensor(0.5));
    return loss;
  });
  const double before = step(x, y).item<double>();
  for (int i = 0; i < 20; ++i) step(x, y);
  EXPECT_LT(step(x, y).item<double>(), 0.01 * before);
  ostringstream out;
  out << sum(x, 1);
  EXPECT_EQ(out.str(), "tensor([1, 1], f32[2] on cpu)");
}

TEST(PublicHeader, HasTokenizersDataAndRuns) {
  const auto bytes = text::make_tokenizer(text::define_byte_tokenizer());
  EXPECT_EQ(bytes->encode("ab").size(), 2U);
  const runs::TrainConfig config;
  EXPECT_FALSE(runs::to_toml(config).empty());
  static_assert(is_class_v<Batches> && is_class_v<training::Trainer> && is_class_v<TokenSet>);
}
