#include "brrr/device/ledger.h"

#include "brrr/base/error.h"

namespace brrr {
namespace {

constinit thread_local Category thread_category = Category::activation;

}  // namespace

std::string_view category_name(Category category) {
  constexpr std::array<std::string_view, kCategories> names = {
      "parameter", "gradient", "optimizer", "activation", "data", "workspace"};
  return names[static_cast<size_t>(category)];
}

void Ledger::Account::add(int64_t bytes) {
  const int64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t highest = peak.load(std::memory_order_relaxed);
  while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
  }
}

void Ledger::add(Category category, int64_t bytes) {
  total_.add(bytes);
  accounts_[static_cast<size_t>(category)].add(bytes);
}

void Ledger::move(Category from, Category to, int64_t bytes) {
  accounts_[static_cast<size_t>(from)].add(-bytes);
  accounts_[static_cast<size_t>(to)].add(bytes);
}

Bytes Ledger::live() const { return Bytes(total_.live.load()); }
Bytes Ledger::peak() const { return Bytes(total_.peak.load()); }
Bytes Ledger::live(Category category) const {
  return Bytes(accounts_[static_cast<size_t>(category)].live.load());
}
Bytes Ledger::peak(Category category) const {
  return Bytes(accounts_[static_cast<size_t>(category)].peak.load());
}

void Ledger::reset_peak() {
  total_.peak = total_.live.load();
  for (Account& account : accounts_) account.peak = account.live.load();
}

Ledger& ledger(Device device) {
  static Ledger cpu, null;
  static std::array<Ledger, kMaxCudaDevices> cuda;
  if (device.kind == DeviceKind::cpu) return cpu;
  if (device.kind == DeviceKind::null) return null;
  return cuda[device.index];
}

CategoryScope::CategoryScope(Category category) : outer_(thread_category) {
  thread_category = category;
}
CategoryScope::~CategoryScope() { thread_category = outer_; }
Category current_category() { return thread_category; }

}  // namespace brrr
