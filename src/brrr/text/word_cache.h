// Remembers the ids of words: a text repeats its words, and a look-up is ten times quicker than merging.
// Memory is bounded; a full cache starts anew. Each thread works with one of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "brrr/text/word_map.h"

namespace brrr::text {

class WordCache {
 public:
  // Appends the ids of the word and returns true, or returns false when it does not know them.
  bool append(std::string_view word, std::vector<int32_t>& ids) {
    const Entry* entry = words_.find(word);
    if (!entry) return false;
    if (entry->count <= kInline) {
      for (int32_t i = 0; i < entry->count; ++i) ids.push_back(entry->ids[static_cast<size_t>(i)]);
    } else {
      const auto first = more_ids_.begin() + entry->ids[0];
      ids.insert(ids.end(), first, first + entry->count);
    }
    return true;
  }

  void remember(std::string_view word, std::span<const int32_t> ids) {
    if (word.size() > kMaxWordBytes) return;
    if (words_.size() >= kMaxWords || more_ids_.size() >= kMaxMoreIds) {
      words_.clear();
      more_ids_.clear();
    }
    Entry& entry = words_.find_or_add(word);
    entry.count = static_cast<int32_t>(ids.size());
    if (ids.size() <= kInline) {
      std::copy(ids.begin(), ids.end(), entry.ids.begin());
    } else {
      entry.ids[0] = static_cast<int32_t>(more_ids_.size());
      more_ids_.insert(more_ids_.end(), ids.begin(), ids.end());
    }
  }

 private:
  static constexpr int32_t kInline = 3;
  static constexpr size_t kMaxWordBytes = 256, kMaxWords = 1 << 17, kMaxMoreIds = 1 << 20;
  struct Entry {                       // 16 bytes, so that with its key it is half a cache line
    std::array<int32_t, kInline> ids;  // or, where there are more, where they begin in more_ids_
    int32_t count;
  };
  WordMap<Entry> words_;
  std::vector<int32_t> more_ids_;
};

// Caches that wait for the next call, so that they are warm, and never shared by two threads.
class WordCachePool {
 public:
  std::unique_ptr<WordCache> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<WordCache>();
    std::unique_ptr<WordCache> cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }
  void give_back(std::unique_ptr<WordCache> cache) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(cache));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace brrr::text
