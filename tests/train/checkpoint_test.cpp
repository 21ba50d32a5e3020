// Checkpoints are there whole or not at all, and what is damaged is passed over by name.
#include "brrr/run/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "brrr/io/safetensors.h"
#include "brrr/io/sealed_folder.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/random/random.h"
#include "brrr/optim/optimizer.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

runs::Snapshot snapshot(int64_t step, double value = 1) {
  return {.step = step,
          .model_json = "{}",
          .state_json = "{}",
          .tokenizer_json = "{}",
          .model = {{"w", full({1000, 4}, value)}},
          .optimizer = {{"m", full({1000, 4}, value / 2)}}};
}

// Files may not grow past so many bytes while it lives: what a full disk looks like to a writer.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST(Checkpoint, ComesBackAsItWas) {
  const TempFolder run;
  runs::write_checkpoint(run.path(), snapshot(7, 3), {});
  const runs::FoundCheckpoint found = runs::find_checkpoint(run.path());
  EXPECT_EQ(found.path.filename(), "step-00000007");
  const runs::Snapshot back = runs::read_checkpoint(found.path);
  EXPECT_EQ(back.step, 7);
  ASSERT_EQ(back.model.size(), 1U);
  EXPECT_EQ(back.model[0].name, "w");
  EXPECT_EQ(back.model[0].tensor.to_vector<float>(), std::vector<float>(4000, 3.0F));
  EXPECT_EQ(back.optimizer[0].tensor.to_vector<float>(), std::vector<float>(4000, 1.5F));
}

TEST(Checkpoint, KeepsTheNewestAndTheBest) {
  const TempFolder run;
  for (int64_t step = 1; step <= 6; ++step) {
    runs::Snapshot taken = snapshot(step);
    taken.is_best = step == 2;
    runs::write_checkpoint(run.path(), taken, {.keep = 2});
  }
  EXPECT_THAT(runs::list_checkpoints(run.path()), ElementsAre(2, 5, 6));
  EXPECT_EQ(read_file(runs::checkpoints_of(run.path()) / "best"), "step-00000002\n");
}

TEST(Checkpoint, PassesOverDamagedOnesByName) {
  const TempFolder run;
  for (const int64_t step : {10, 20, 30})
    runs::write_checkpoint(run.path(), snapshot(step), {.keep = 3});
  const fs::path folder = runs::checkpoints_of(run.path());
  fs::resize_file(folder / "step-00000030" / "model.safetensors", 1000);
  std::string bytes = read_file(folder / "step-00000020" / "optimizer.safetensors");
  bytes[bytes.size() / 2] ^= 4;
  std::ofstream(folder / "step-00000020" / "optimizer.safetensors", std::ios::binary) << bytes;

  const runs::FoundCheckpoint found = runs::find_checkpoint(run.path());
  EXPECT_EQ(found.step, 10);
  ASSERT_EQ(found.damaged.size(), 2U);
  EXPECT_THAT(found.damaged[0], HasSubstr("step-00000030/model.safetensors is damaged"));
  EXPECT_THAT(found.damaged[1], HasSubstr("step-00000020/optimizer.safetensors is damaged"));
  EXPECT_THAT(error_of([&] { runs::read_checkpoint(folder / "step-00000020"); }),
              HasSubstr("is damaged"));

  runs::set_aside_damaged(run.path(), 10);
  EXPECT_THAT(runs::list_checkpoints(run.path()), ElementsAre(10));
  EXPECT_TRUE(fs::exists(folder / "step-00000030.damaged"));
  runs::write_checkpoint(run.path(), snapshot(20), {});  // the name is free again
}

TEST(Checkpoint, WritesInTheBackgroundFromACopy) {
  const TempFolder run;
  runs::CheckpointWriter writer(run.path(), {});
  const Tensor live = full({100000}, 1);
  runs::Snapshot taken = snapshot(1);
  taken.model = runs::copy_tensors({{"w", live}});
  writer.begin(std::move(taken));
  live.fill(2);  // training goes on
  writer.finish();
  EXPECT_EQ(runs::read_checkpoint(runs::find_checkpoint(run.path()).path)
                .model[0]
                .tensor[0]
                .item<float>(),
            1);
}

// The kernel refuses to let files grow, as it does on a full disk.
TEST(Checkpoint, AFailedWriteIsToldAndKeepsWhatIsThere) {
  const TempFolder run;
  runs::write_checkpoint(run.path(), snapshot(1), {});
  runs::CheckpointWriter writer(run.path(), {});
  {
    const FileSizeLimit limit(8000);
    writer.begin(snapshot(2));
    EXPECT_THAT(error_of([&] { writer.finish(); }), HasSubstr("step-00000002.partial"));
    writer.begin(snapshot(3));
    std::optional<std::string> failure;
    while (!failure) failure = writer.take_failure();
    EXPECT_THAT(*failure, HasSubstr("step-00000003.partial"));
    EXPECT_FALSE(writer.take_failure()) << "told once";
  }
  EXPECT_EQ(runs::find_checkpoint(run.path()).step, 1);
  EXPECT_FALSE(fs::exists(runs::checkpoints_of(run.path()) / "step-00000003.partial"));
  writer.begin(snapshot(4));  // room again
  writer.finish();
  EXPECT_EQ(runs::find_checkpoint(run.path()).step, 4);
}

// Three layers of 64 x 64 and a head of 64, with AdaGrad: 12,352 parameters and as many states of f32.
TEST(Checkpoint, OfTheLectureHas98816BytesOfPayload) {
  std::vector<NamedTensor> parameters;
  for (int i = 0; i < 3; ++i)
    parameters.push_back(
        {join_text("layers.", i, ".weight"),
         normal({64, 64}, RandomKey{.seed = 5, .draw = static_cast<uint32_t>(i)})});
  parameters.push_back({"final.weight", normal({64, 1}, RandomKey{.seed = 6})});
  AdaGrad optimizer(parameters);
  std::vector<Tensor> grads;
  for (const NamedTensor& parameter : parameters) grads.push_back(parameter.tensor * 0.5);
  optimizer.update(grads, 0.1);

  const TempFolder run;
  runs::Snapshot taken = snapshot(1);
  taken.model = runs::copy_tensors(parameters);
  taken.optimizer = runs::copy_tensors(optimizer.states());
  runs::write_checkpoint(run.path(), taken, {});
  const fs::path folder = runs::find_checkpoint(run.path()).path;
  size_t payload = 0;
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const SafetensorsFile tensors(folder / file);
    for (const auto& entry : tensors.entries()) payload += entry.end - entry.begin;
  }
  EXPECT_EQ(payload, 98'816U);
  const runs::Snapshot back = runs::read_checkpoint(folder);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(back.model[i].tensor.to_vector<float>(), parameters[i].tensor.to_vector<float>());
    EXPECT_EQ(back.optimizer[i].tensor.to_vector<float>(),
              optimizer.states()[i].tensor.to_vector<float>());
  }
}

}  // namespace
}  // namespace brrr
