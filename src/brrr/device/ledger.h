// The ledger: how many bytes live on a device now, at most so far, and for what.
// Exact: a 32x32 f32 tensor moves it by 4096 B, no rounding. Safe to use from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "brrr/base/units.h"
#include "brrr/device/device.h"

namespace brrr {

enum class Category : uint8_t { parameter, gradient, optimizer, activation, data, workspace };
inline constexpr int kCategories = 6;
std::string_view category_name(Category category);

class Ledger {
 public:
  Bytes live() const;
  Bytes live(Category category) const;
  Bytes peak() const;  // highest total since the start or the last reset_peak
  Bytes peak(Category category) const;
  void reset_peak();

  void add(Category category, int64_t bytes);  // negative when bytes are freed
  void move(Category from, Category to, int64_t bytes);

 private:
  struct Account {
    std::atomic<int64_t> live{0}, peak{0};
    void add(int64_t bytes);
  };
  Account total_;
  std::array<Account, kCategories> accounts_;
};

Ledger& ledger(Device device = Device::cpu());

// What new tensors are for, on this thread, while the scope lives:
//   CategoryScope scope(Category::optimizer);
class CategoryScope {
 public:
  explicit CategoryScope(Category category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  Category outer_;
};
Category current_category();  // Category::activation outside any scope

}  // namespace brrr
