// Keys and the streams that they come from; random.cpp has the ops that take them.
#include <utility>

#include "brrr/graph/trace.h"
#include "brrr/kernels/cpu/random/random_cpu.h"
#include "brrr/ops/random/random.h"

namespace brrr {

Tensor key_tensor(const RandomKey& key, Device device) {
  check(!graph::Tracer::current(),
        "random: a key made inside a compiled function would give the same numbers at every call; ",
        "make it outside with key_tensor(stream.next()) and pass it as an input");
  CategoryScope scope(Category::data);
  const Tensor words = empty({3}, DType::i64, device);
  if (device.has_data()) {
    const int64_t values[] = {static_cast<int64_t>(key.seed), key.stream, key.draw};
    for (int i = 0; i < 3; ++i) store_int(words, i, values[i]);
  }
  return words;
}

namespace {
constinit thread_local KeyRecording* innermost_recording = nullptr;
constinit thread_local KeyReplay* innermost_replay = nullptr;
}  // namespace

KeyRecording::KeyRecording(std::vector<RandomKey>& into)
    : into_(into), outer_(std::exchange(innermost_recording, this)) {}
KeyRecording::~KeyRecording() { innermost_recording = outer_; }

void KeyRecording::add(const RandomKey& key) {
  into_.push_back(key);
  if (outer_) outer_->add(key);
}

KeyReplay::KeyReplay(std::span<const RandomKey> keys)
    : keys_(keys), outer_(std::exchange(innermost_replay, this)) {}
KeyReplay::~KeyReplay() { innermost_replay = outer_; }

RandomKey KeyReplay::take(uint32_t stream) {
  check(next_ < keys_.size() && keys_[next_].stream == stream,
        "random: a function that is run again draws other random numbers than the first time; ",
        "what it draws must not depend on anything but its inputs");
  return keys_[next_++];
}

RandomKey RandomStream::next() {
  const RandomKey key = innermost_replay ? innermost_replay->take(stream_) : draw_next();
  if (innermost_recording) innermost_recording->add(key);
  return key;
}

RandomKey RandomStream::draw_next() {
  const uint32_t draw = draws_.fetch_add(1);
  check(draw != UINT32_MAX, "random: a stream has drawn 2^32 tensors and would repeat itself; ",
        "take a stream of another name");
  return {seed_, stream_, draw};
}

RandomStream& Random::stream(std::string_view name) {
  std::lock_guard lock(mutex_);
  if (const auto found = streams_.find(name); found != streams_.end()) return found->second;
  for (const auto& [other, stream] : streams_) {
    check(stream.stream_ != stream_id(name), "random: the streams \"", other, "\" and \"", name,
          "\" have the same number and would draw the same values; rename one of them");
  }
  return streams_
      .emplace(std::piecewise_construct, std::forward_as_tuple(name),
               std::forward_as_tuple(seed_, name))
      .first->second;
}

void Random::reseed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  seed_ = seed;
  for (auto& [name, stream] : streams_) {
    stream.seed_ = seed;
    stream.resume_at(0);
  }
}

Random& default_random() {
  static Random random(0);
  return random;
}
void seed_all(uint64_t seed) { default_random().reseed(seed); }

}  // namespace brrr
