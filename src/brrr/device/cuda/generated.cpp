#include "brrr/device/cuda/generated.h"

#include <map>
#include <mutex>
#include <utility>

#include "brrr/base/error.h"

namespace brrr::cuda {

std::string architecture_of(int device) {
  const DeviceFacts& facts = device_facts(device);
  // "a" unlocks what only this generation has; such code runs on no other.
  const char* suffix = facts.major == 9 && facts.minor == 0 ? "a" : "";
  return join_text("sm_", facts.major, facts.minor, suffix);
}

const Kernel& generated_kernel(const SourceText& source, const std::string& name, int device) {
  using Key = std::pair<std::shared_ptr<const std::string>, std::string>;
  static std::mutex mutex;
  static std::map<Key, Kernel> kernels;
  static std::map<std::shared_ptr<const std::string>, Library> libraries;
  const std::shared_ptr<const std::string> code = compile_source(source, architecture_of(device));
  const std::lock_guard lock(mutex);
  if (const auto known = kernels.find({code, name}); known != kernels.end()) return known->second;
  auto library = libraries.find(code);
  if (library == libraries.end())
    library = libraries.emplace(code, Library(std::as_bytes(std::span(*code)))).first;
  return kernels.emplace(Key{code, name}, library->second.kernel(name)).first->second;
}

}  // namespace brrr::cuda
