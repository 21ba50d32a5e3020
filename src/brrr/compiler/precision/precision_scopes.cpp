// Overrides by module name: patterns, and what to say when one fits nothing.
#include <algorithm>
#include <numeric>
#include <set>

#include "brrr/compiler/graph_names.h"
#include "brrr/compiler/precision/precision_table.h"

namespace brrr::compiler {
namespace {

// The scope and everything around it: "h.0.attn", then "h.0", then "h".
template <typename Visit>
void for_each_module(std::string_view scope, Visit&& visit) {
  while (!scope.empty()) {
    visit(scope);
    const size_t dot = scope.rfind('.');
    scope = dot == std::string_view::npos ? std::string_view() : scope.substr(0, dot);
  }
}

bool covers(const PrecisionOverride& entry, std::string_view scope) {
  bool found = false;
  for_each_module(
      scope, [&](std::string_view module) { found |= matches_pattern(entry.pattern, module); });
  return found;
}

// Insertions, deletions and changes that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// The five modules whose names are nearest to the pattern.
std::string near_names(std::string_view pattern, const std::set<std::string_view>& modules) {
  std::vector<std::pair<size_t, std::string_view>> nearest;
  for (std::string_view module : modules)
    nearest.emplace_back(edit_distance(pattern, module), module);
  std::sort(nearest.begin(), nearest.end());
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(5, nearest.size()); ++i)
    out += join_text(i == 0 ? "" : ", ", nearest[i].second);
  return out;
}

// Of all nodes, those in bodies among them.
void find_scopes(const Graph& graph, std::set<std::string_view>& scopes) {
  for (const Node& node : graph.nodes) {
    scopes.insert(node.scope);
    if (node.body) find_scopes(*node.body, scopes);
  }
}

[[noreturn]] void fail_unmatched(const std::set<std::string_view>& scopes,
                                 std::string_view pattern) {
  std::set<std::string_view> modules;
  for (std::string_view scope : scopes)
    for_each_module(scope, [&](std::string_view module) { modules.insert(module); });
  if (modules.empty())
    fail("precision: the override \"", pattern, "\" covers nothing: no node of this program ",
         "carries the name of a module; open a Scope, or call its modules");
  fail("precision: the override \"", pattern,
       "\" covers no module; near names: ", near_names(pattern, modules));
}

}  // namespace

// Greedy with one point to come back to: the last *, and where its text ended.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == text[t]))) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<Precision> node_precisions(const Graph& graph, const PrecisionOptions& options) {
  std::vector<Precision> precisions(graph.nodes.size(), options.policy);
  for (const PrecisionOverride& entry : options.overrides) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (covers(entry, graph.nodes[n].scope)) precisions[n] = entry.precision;
    }
  }
  return precisions;
}

void check_overrides(const Graph& graph, std::span<const PrecisionOverride> overrides) {
  std::set<std::string_view> scopes;
  find_scopes(graph, scopes);
  for (const PrecisionOverride& entry : overrides) {
    const auto is_covered = [&](std::string_view scope) { return covers(entry, scope); };
    if (std::none_of(scopes.begin(), scopes.end(), is_covered))
      fail_unmatched(scopes, entry.pattern);
  }
}

}  // namespace brrr::compiler
