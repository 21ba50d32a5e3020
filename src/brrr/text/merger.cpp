#include "brrr/text/merger.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace brrr::text {
namespace {

constexpr size_t kShortBytes = 64;

}  // namespace

Merger::Merger(const TokenizerDefinition& definition, const TokenIndex& index)
    : byte_ids_(index.byte_ids()),
      ranks_(std::max(definition.merges.size(), definition.tokens.size())) {
  if (definition.rule == MergeRule::by_id) {
    add_every_cut(definition, index);
    return;
  }
  for (size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const auto [left, right] = definition.merges[rank];
    const std::string whole = definition.tokens[static_cast<size_t>(left)] +
                              definition.tokens[static_cast<size_t>(right)];
    add(left, right, rank, index.find(whole));
  }
}

void Merger::add(int32_t left, int32_t right, size_t rank, int32_t merged) {
  ranks_.find_or_add(pair_key(static_cast<uint32_t>(left), static_cast<uint32_t>(right)),
                     static_cast<Ranked>(rank) << 32 | static_cast<uint32_t>(merged));
}

// Any two tokens that together are a third one may merge into it.
void Merger::add_every_cut(const TokenizerDefinition& definition, const TokenIndex& index) {
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string_view token = definition.tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const int32_t left = index.find(token.substr(0, cut));
      if (left == TokenIndex::kNone) continue;
      const int32_t right = index.find(token.substr(cut));
      if (right != TokenIndex::kNone) add(left, right, id, static_cast<int32_t>(id));
    }
  }
}

std::vector<int32_t> Merger::merge(std::string_view word, uint32_t rank_limit) const {
  return word.size() <= kShortBytes ? merge_short(word, rank_limit) : merge_long(word, rank_limit);
}

std::vector<int32_t> Merger::merge_short(std::string_view word, uint32_t rank_limit) const {
  std::array<int32_t, kShortBytes> ids;
  std::array<Ranked, kShortBytes> ranks;  // of ids[i] with ids[i + 1]
  size_t count = word.size();
  for (size_t i = 0; i < count; ++i) ids[i] = byte_ids_[static_cast<unsigned char>(word[i])];
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = look_up(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] >> 32 >= rank_limit) break;
    ids[best] = static_cast<int32_t>(static_cast<uint32_t>(ranks[best]));
    --count;
    for (size_t i = best + 1; i < count; ++i) ids[i] = ids[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) ranks[i] = ranks[i + 1];
    if (best > 0) ranks[best - 1] = look_up(ids[best - 1], ids[best]);
    if (best + 1 < count) ranks[best] = look_up(ids[best], ids[best + 1]);
  }
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::vector<int32_t> Merger::merge_long(std::string_view word, uint32_t rank_limit) const {
  struct Node {
    int32_t id;
    uint32_t previous, next;
    uint32_t rank;  // of this one with the next
  };
  constexpr uint32_t kNone = UINT32_MAX;
  const auto count = static_cast<uint32_t>(word.size());
  std::vector<Node> nodes(count);
  std::vector<uint64_t> waiting;  // rank, place: what is on top goes first; some are out of date

  const auto rank_of = [&](uint32_t place) {
    const uint32_t next = nodes[place].next;
    if (next == kNone) return kNone;
    return static_cast<uint32_t>(look_up(nodes[place].id, nodes[next].id) >> 32);
  };
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(word[i])];
    nodes[i] = {id, i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, kNone};
  }
  for (uint32_t i = 0; i < count; ++i) {
    nodes[i].rank = rank_of(i);
    if (nodes[i].rank != kNone) waiting.push_back(pair_key(nodes[i].rank, i));
  }
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue(std::greater<>(),
                                                                             std::move(waiting));
  const auto rank_anew = [&](uint32_t place) {
    nodes[place].rank = rank_of(place);
    if (nodes[place].rank != kNone) queue.push(pair_key(nodes[place].rank, place));
  };
  while (!queue.empty()) {
    const auto rank = static_cast<uint32_t>(queue.top() >> 32);
    const auto place = static_cast<uint32_t>(queue.top());
    queue.pop();
    Node& node = nodes[place];
    if (rank >= rank_limit) break;
    if (node.rank != rank) continue;  // merged into another, or its partner was
    Node& partner = nodes[node.next];
    node.id = static_cast<int32_t>(static_cast<uint32_t>(look_up(node.id, partner.id)));
    node.next = partner.next;
    partner.rank = kNone;
    if (node.next != kNone) nodes[node.next].previous = place;
    rank_anew(place);
    if (node.previous != kNone) rank_anew(node.previous);
  }
  std::vector<int32_t> ids;
  for (uint32_t place = 0; place != kNone; place = nodes[place].next)
    ids.push_back(nodes[place].id);
  return ids;
}

}  // namespace brrr::text
