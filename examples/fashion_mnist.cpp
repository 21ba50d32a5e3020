// Clothes told apart: Fashion-MNIST by a multilayer perceptron and by a convolutional network.
//   fashion_mnist                 a tenth of the images, some seconds
//   fashion_mnist --full          all of them; over 88 % (mlp) and 90 % (cnn) of the test images
//   fashion_mnist --full --only cnn --folder DIR   one of them; the files are not where Debian puts them
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "brrr/brrr.h"
#include "brrr/data/idx_file.h"
#include "brrr/report/progress.h"
#include "brrr/report/table.h"

using namespace brrr;

namespace {

constexpr int64_t kBatch = 100;

struct Images {
  Tensor pixels, labels;  // u8 [count, 28, 28] and i64 [count]
  int64_t count() const { return labels.dim(0); }
};

Images load_images(const std::filesystem::path& folder, const std::string& part, int64_t most) {
  Tensor pixels = load_idx(folder / (part + "-images-idx3-ubyte.gz"));
  Tensor labels = cast(load_idx(folder / (part + "-labels-idx1-ubyte.gz")), DType::i64);
  return {slice(pixels, 0, {0, std::min(most, pixels.dim(0))}),
          slice(labels, 0, {0, std::min(most, labels.dim(0))})};
}

// The pixels of some images as a network likes them: [batch, 1, 28, 28], around 0, of size 1.
Tensor network_input(const Images& images, const Tensor& ids) {
  const Tensor pixels = cast(index_select(images.pixels, 0, ids), DType::f32);
  return reshape((pixels / 255.0 - 0.286) / 0.353, {-1, 1, 28, 28});
}

double accuracy(const Layer& net, const Images& images) {
  auto count_right = compile([&](const Tensor& ids) {
    const Tensor guesses = argmax(net(network_input(images, ids)), -1);
    return sum(cast(equal(guesses, index_select(images.labels, 0, ids)), DType::f32));
  });
  double right = 0;
  for (int64_t first = 0; first < images.count(); first += kBatch)
    right += count_right(arange(first, first + kBatch, 1, {.dtype = DType::i64})).item<double>();
  return right / static_cast<double>(images.count());
}

struct Training {
  int64_t epochs;
  double rate;
};
void train(const Layer& net, const Images& images, const Training& training, Random& random) {
  const int64_t steps_per_epoch = images.count() / kBatch,
                steps = training.epochs * steps_per_epoch;
  AdamW optimizer(net.trainable_parameters(), {.weight_decay = 0.05});
  const Schedule schedule(
      {.rate = training.rate, .steps = steps, .warmup = steps / 20, .final_share = 0.02});
  // One compiled step: pictures in, loss out, weights changed in between.
  auto step = compile([&](const Tensor& ids, const Tensor& number, const Tensor& dropout_key) {
    const Tensor logits = net(network_input(images, ids), {.dropout_key = dropout_key});
    const Tensor loss = cross_entropy(logits, index_select(images.labels, 0, ids));
    optimizer.update(grad(loss, optimizer.parameters()), schedule.at(number));
    return loss;
  });
  report::Progress progress(steps);
  Tensor order;
  for (int64_t n = 0; n < steps; ++n) {
    const int64_t place = n % steps_per_epoch;
    if (place == 0) order = permutation(images.count(), random.stream("order"));
    const Tensor ids = slice(order, 0, {place * kBatch, (place + 1) * kBatch});
    const Tensor loss =
        step(ids, full({}, static_cast<double>(n)), key_tensor(random.stream("dropout").next()));
    if (progress.is_due(n + 1))
      progress.update(n + 1, fmt::format("loss {:.3f}", loss.item<double>()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Fashion-MNIST by a multilayer perceptron and by a convolutional network"};
  bool full_size = false;
  std::string only;
  std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  app.add_flag("--full", full_size, "All images, more epochs: some minutes");
  app.add_option("--only", only, "One of the two networks")->check(CLI::IsMember({"mlp", "cnn"}));
  app.add_option("--folder", folder, "Where train-images-idx3-ubyte.gz and the other three are");
  CLI11_PARSE(app, argc, argv);
  if (!std::filesystem::exists(folder / "train-images-idx3-ubyte.gz")) {
    fmt::print(
        "There are no Fashion-MNIST files in {}, so nothing was done.\n"
        "On Debian: apt-get install dataset-fashion-mnist; elsewhere get the four .gz files from\n"
        "github.com/zalandoresearch/fashion-mnist and give their folder with --folder.\n",
        folder.string());
    return 0;
  }
  const Images images = load_images(folder, "train", full_size ? 60000 : 6000);
  const Images test = load_images(folder, "t10k", full_size ? 10000 : 2000);
  fmt::print("{} images to learn from, {} to be asked about{}\n", images.count(), test.count(),
             full_size ? "" : " (--full takes all)");

  Random random(1);
  report::Table table({"network", "parameters", "epochs", "right on test images"});
  // What is promised of the whole; of a tenth, that something was learnt (guessing gives 10 %).
  const auto run = [&](const std::string& name, const Layer& net, const Training& training,
                       double promised) {
    if (!only.empty() && only != name) return true;
    fmt::print("{}\n", name);
    train(net, images, training, random);
    const double right = accuracy(net, test);
    table.row(name, with_commas(net.parameter_count()), training.epochs,
              fmt::format("{:.2f} %", 100 * right));
    return right > promised;
  };
  const Mlp mlp({.hidden = {256, 128}, .dropout = 0.1}, random);
  const Cnn cnn({.filters = {16, 32}}, random);
  const bool mlp_good =
      run("mlp", mlp, {.epochs = full_size ? 10 : 3, .rate = 1e-3}, full_size ? 0.88 : 0.7);
  const bool cnn_good =
      run("cnn", cnn, {.epochs = full_size ? 3 : 1, .rate = 2e-3}, full_size ? 0.90 : 0.65);
  fmt::print("\n{}", table.text());
  return mlp_good && cnn_good ? 0 : 1;
}
