// Random tensors. Numbers are a pure function of a key and the position of the element (Philox,
// base/philox.h): no hidden state, the same bits for any number of threads, and recomputed at will.
//
//   Random random(42);                                   // one seed for a whole program
//   Tensor w = normal({768, 768}, random.stream("init"), {.std = 0.02});
//   Tensor u = uniform({4}, RandomKey{.seed = 1, .stream = stream_id("data"), .draw = 7});
//   Tensor z = normal({2, 3});                           // stream "default" of default_random()
//
// Element i takes half of block i / 2: 53 bits of it (uniform), 52 (truncated_normal), 64 (randint)
// or one of the pair of normals that a block makes. Arithmetic is in f64 and rounds once to the
// dtype, so one key gives the same numbers in every dtype, up to rounding.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "brrr/base/philox.h"
#include "brrr/kernels/scalar/random_key.h"
#include "brrr/ops/create/creation.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

// The key as the i64[3] operand (seed, stream, draw) of the random ops. A compiled step takes it as
// an input, and so gives other numbers at every call.
Tensor key_tensor(const RandomKey& key, Device device = Device::cpu());

// The keys of one named use, one after another. Threads may share it.
class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view name) : seed_(seed), stream_(stream_id(name)) {}

  RandomKey next();
  uint32_t draws() const { return draws_; }  // for a checkpoint, with resume_at as the way back
  void resume_at(uint32_t draw) { draws_ = draw; }

 private:
  friend class Random;
  RandomKey draw_next();

  uint64_t seed_;
  uint32_t stream_;
  std::atomic<uint32_t> draws_ = 0;
};

// Streams give the same keys again when a function runs a second time:
//   std::vector<RandomKey> keys;
//   { KeyRecording first(keys);  fn(); }
//   { KeyReplay again(keys);     fn(); }     // draws nothing new
// Both concern the thread that made them.
class KeyRecording {
 public:
  explicit KeyRecording(std::vector<RandomKey>& into);
  ~KeyRecording();
  KeyRecording(const KeyRecording&) = delete;
  KeyRecording& operator=(const KeyRecording&) = delete;
  void add(const RandomKey& key);

 private:
  std::vector<RandomKey>& into_;
  KeyRecording* outer_;
};
class KeyReplay {
 public:
  explicit KeyReplay(std::span<const RandomKey> keys);
  ~KeyReplay();
  KeyReplay(const KeyReplay&) = delete;
  KeyReplay& operator=(const KeyReplay&) = delete;
  RandomKey take(uint32_t stream);

 private:
  std::span<const RandomKey> keys_;
  size_t next_ = 0;
  KeyReplay* outer_;
};

// A seed and its streams. What one stream draws does not move the others: dropout leaves the data
// order alone.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}

  // The stream of that name, made at first use; it lives as long as this object.
  RandomStream& stream(std::string_view name);
  uint64_t seed() const { return seed_; }
  // Another seed, and every stream at its beginning. Not to be called while others draw.
  void reseed(uint64_t seed);

 private:
  uint64_t seed_;
  std::mutex mutex_;
  std::map<std::string, RandomStream, std::less<>> streams_;  // nodes: references stay valid
};

// What calls without a key draw from, by its stream "default". Its seed is 0 until seed_all.
Random& default_random();
// One seed for everything that draws from default_random(), from the beginning.
void seed_all(uint64_t seed);

// Where a random op finds its key: given, the next of a stream, or in a tensor.
class KeyArg {
 public:
  KeyArg(const RandomKey& key) : key_(key) {}            // NOLINT: keys are given in many ways
  KeyArg(RandomStream& stream) : key_(stream.next()) {}  // NOLINT
  KeyArg(const Tensor& key) : tensor_(key) {}            // NOLINT
  Tensor on(Device device) const { return tensor_.defined() ? tensor_ : key_tensor(key_, device); }

 private:
  RandomKey key_;
  Tensor tensor_;
};

// [low, high): never `high`, even after rounding.
struct UniformRange {
  double low = 0, high = 1;
};
Tensor uniform(const Shape& shape, const KeyArg& key, UniformRange range = {},
               TensorOptions options = {});
Tensor uniform(const Shape& shape, UniformRange range = {}, TensorOptions options = {});
Tensor uniform(const Shape& shape, const KeyArg& key, UniformRange range,
               TensorSetting auto setting) {
  return uniform(shape, key, range, with_setting(setting));
}
Tensor uniform(const Shape& shape, UniformRange range, TensorSetting auto setting) {
  return uniform(shape, range, with_setting(setting));
}
Tensor uniform(const Shape& shape, const KeyArg& key, TensorSetting auto setting) {
  return uniform(shape, key, UniformRange{}, setting);
}
Tensor uniform(const Shape& shape, TensorSetting auto setting) {
  return uniform(shape, UniformRange{}, setting);
}

// Box-Muller: elements 2k and 2k + 1 are r cos and r sin of one pair of uniforms, |z| <= 8.6.
struct Gaussian {
  double mean = 0, std = 1;
};
Tensor normal(const Shape& shape, const KeyArg& key, Gaussian gaussian = {},
              TensorOptions options = {});
Tensor normal(const Shape& shape, Gaussian gaussian = {}, TensorOptions options = {});
Tensor normal(const Shape& shape, const KeyArg& key, Gaussian gaussian,
              TensorSetting auto setting) {
  return normal(shape, key, gaussian, with_setting(setting));
}
Tensor normal(const Shape& shape, Gaussian gaussian, TensorSetting auto setting) {
  return normal(shape, gaussian, with_setting(setting));
}
Tensor normal(const Shape& shape, const KeyArg& key, TensorSetting auto setting) {
  return normal(shape, key, Gaussian{}, setting);
}
Tensor normal(const Shape& shape, TensorSetting auto setting) {
  return normal(shape, Gaussian{}, setting);
}

// Bounds of a truncated normal say what they count in; numbers alone have been read both ways.
struct SigmaBounds {  // mean + low * std .. mean + high * std
  double low = -2, high = 2;
};
struct AbsoluteBounds {  // low .. high, as torch.nn.init.trunc_normal_ means a and b
  double low = -2, high = 2;
};
struct TruncatedGaussian {
  double mean = 0, std = 1;
  std::variant<SigmaBounds, AbsoluteBounds> bounds = SigmaBounds{};
};
// A normal conditioned on its bounds, by the inverse distribution function; rounded inside them.
Tensor truncated_normal(const Shape& shape, const KeyArg& key, TruncatedGaussian gaussian = {},
                        TensorOptions options = {});
Tensor truncated_normal(const Shape& shape, TruncatedGaussian gaussian = {},
                        TensorOptions options = {});
Tensor truncated_normal(const Shape& shape, const KeyArg& key, TruncatedGaussian gaussian,
                        TensorSetting auto setting) {
  return truncated_normal(shape, key, gaussian, with_setting(setting));
}
Tensor truncated_normal(const Shape& shape, TruncatedGaussian gaussian,
                        TensorSetting auto setting) {
  return truncated_normal(shape, gaussian, with_setting(setting));
}
Tensor truncated_normal(const Shape& shape, const KeyArg& key, TensorSetting auto setting) {
  return truncated_normal(shape, key, TruncatedGaussian{}, setting);
}
Tensor truncated_normal(const Shape& shape, TensorSetting auto setting) {
  return truncated_normal(shape, TruncatedGaussian{}, setting);
}

// Integers in [low, high). The bias is below (high - low) / 2^64.
Tensor randint(const Shape& shape, const KeyArg& key, int64_t low, int64_t high,
               TensorOptions options = {.dtype = DType::i64});
Tensor randint(const Shape& shape, int64_t low, int64_t high,
               TensorOptions options = {.dtype = DType::i64});
Tensor randint(const Shape& shape, const KeyArg& key, int64_t low, int64_t high,
               TensorSetting auto setting) {
  return randint(shape, key, low, high, with_setting(setting, {.dtype = DType::i64}));
}
Tensor randint(const Shape& shape, int64_t low, int64_t high, TensorSetting auto setting) {
  return randint(shape, low, high, with_setting(setting, {.dtype = DType::i64}));
}

// 1 with probability p, else 0: where uniform(shape, key) < p. Floats and bools.
Tensor bernoulli(const Shape& shape, const KeyArg& key, double p, TensorOptions options = {});
Tensor bernoulli(const Shape& shape, double p, TensorOptions options = {});
Tensor bernoulli(const Shape& shape, const KeyArg& key, double p, TensorSetting auto setting) {
  return bernoulli(shape, key, p, with_setting(setting));
}
Tensor bernoulli(const Shape& shape, double p, TensorSetting auto setting) {
  return bernoulli(shape, p, with_setting(setting));
}

// 0 .. count - 1 in a random order, every order equally likely: sorted by random bits. i64.
Tensor permutation(int64_t count, const KeyArg& key, Device device = Device::cpu());
Tensor permutation(int64_t count, Device device = Device::cpu());

}  // namespace brrr
