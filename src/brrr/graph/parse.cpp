// Reads the text form of a graph (graph/print.h).
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "brrr/graph/print.h"
#include "brrr/graph/repeat.h"
#include "brrr/graph/scope.h"
#include "brrr/graph/verify.h"

namespace brrr::graph {
namespace {

// Attribute names are string literals everywhere else; those read from text live here for good.
std::string_view keep_name(std::string_view name) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> names;
  std::lock_guard lock(mutex);
  return *names.emplace(name).first;
}

// One line, read from left to right.
class Line {
 public:
  Line(std::string_view text, int number) : whole_(text), text_(text), number_(number) {}

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail("graph text, line ", number_, ": ", parts..., "\n  ", whole_);
  }

  void skip_spaces() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  bool at_end() {
    skip_spaces();
    return text_.empty();
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void require(std::string_view token) {
    if (!take(token)) refuse("expected ", token, " before \"", text_, "\"");
  }
  // Everything up to a character that ends words here.
  std::string_view word() {
    skip_spaces();
    const size_t end = std::min(text_.find_first_of(" {}[],=:\""), text_.size());
    const std::string_view found = text_.substr(0, end);
    if (found.empty()) refuse("expected a word before \"", text_, "\"");
    text_.remove_prefix(end);
    return found;
  }
  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (status != std::errc()) refuse("expected an integer before \"", text_, "\"");
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  Axes list() {
    require("[");
    Axes values;
    while (!take("]")) {
      if (!values.empty()) require(",");
      if (values.size() == kMaxRank) refuse("more than ", kMaxRank, " sizes");
      values.push_back(integer());
    }
    return values;
  }
  std::string quoted() {
    require("\"");
    std::string out;
    while (!text_.empty() && text_.front() != '"') {
      if (text_.front() == '\\') text_.remove_prefix(1);
      if (text_.empty()) break;
      out += text_.front();
      text_.remove_prefix(1);
    }
    require("\"");
    return out;
  }
  bool next_is(char c) {
    skip_spaces();
    return !text_.empty() && text_.front() == c;
  }

 private:
  std::string_view whole_, text_;
  int number_;
};

// The lines of a text, one after the other; bodies take theirs from the same place.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  // The next line that is not empty.
  std::optional<Line> next() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      Line line(text_.substr(0, end), ++number_);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (!line.at_end()) return line;
    }
    return std::nullopt;
  }

 private:
  std::string_view text_;
  int number_ = 0;
};

constexpr int kMaxDepth = 16;  // of bodies in bodies

class Parser {
 public:
  explicit Parser(Lines& lines, int depth = 0) : lines_(lines), depth_(depth) {}

  // A body ends with its bracket, the whole with the text.
  Graph run() {
    bool closed = false;
    while (!closed) {
      std::optional<Line> line = lines_.next();
      if (!line) break;
      closed = depth_ > 0 && line->take("]");
      if (!closed) parse(*line);
    }
    check(closed || depth_ == 0, "graph text: a body is not closed by ]");
    check(returned_, "graph text: there is no `return` line");
    return std::move(graph_);
  }

 private:
  void parse(Line& line) {
    if (returned_) line.refuse("nothing may follow `return`");
    if (line.next_is('%')) return parse_node(line);
    const std::string_view word = line.word();
    if (word == "input") {
      const ValueId value = parse_given(line);
      graph_.inputs.push_back({line.quoted(), value});
    } else if (word == "state") {
      parse_state(line);
    } else if (word == "seed") {
      graph_.seeds.push_back(parse_use(line));
    } else if (word == "segment") {
      parse_segment(line);
    } else if (word == "write") {
      parse_write(line);
    } else if (word == "return") {
      while (!line.at_end()) graph_.outputs.push_back(parse_use(line));
      returned_ = true;
    } else {
      parse_phase(line, word);
    }
    if (!line.at_end()) line.refuse("the line goes on where it should end");
  }

  void parse_state(Line& line) {
    const ValueId value = parse_given(line);
    StateSlot state{.name = line.quoted(), .before = value, .after = value};
    if (line.take("of")) state.copy_of = static_cast<int>(find_state(line, line.quoted()));
    graph_.states.push_back(std::move(state));
  }

  size_t find_state(const Line& line, std::string_view name) const {
    for (size_t i = 0; i < graph_.states.size(); ++i) {
      if (graph_.states[i].name == name) return i;
    }
    line.refuse("there is no state named \"", name, "\"");
  }

  // They are numbered in order, and one lies only in those before it.
  void parse_segment(Line& line) {
    const int64_t number = line.integer();
    const auto next = static_cast<int64_t>(graph_.segments.size());
    if (number != next) line.refuse("segment ", number, " should be segment ", next);
    Segment segment{.name = line.quoted()};
    if (line.take("in")) segment.parent = parse_segment_use(line);
    segment.checkpoint = line.take("checkpoint");
    graph_.segments.push_back(std::move(segment));
  }

  SegmentId parse_segment_use(Line& line) const {
    const int64_t number = line.integer();
    const auto count = static_cast<int64_t>(graph_.segments.size());
    if (number < 0 || number >= count) line.refuse("there is no segment ", number);
    return SegmentId(static_cast<size_t>(number));
  }

  void parse_phase(Line& line, std::string_view word) {
    for (Phase phase : {Phase::forward, Phase::recompute, Phase::backward, Phase::update}) {
      if (word == phase_name(phase)) {
        phase_ = phase;
        return;
      }
    }
    line.refuse("expected input, state, seed, segment, write, return, a phase or %, not ", word);
  }

  ValueId parse_given(Line& line) {
    const auto [number, type] = parse_declared(line);
    const ValueId id = graph_.add_value(type);
    define(line, number, id);
    return id;
  }

  struct Declared {
    int64_t number;
    TensorType type;
  };
  Declared parse_declared(Line& line) {
    line.require("%");
    Declared found{.number = line.integer(), .type = {}};
    line.require(":");
    found.type.dtype = parse_dtype(line.word());
    found.type.shape = line.list();
    found.type.weak = line.take("weak");
    return found;
  }

  void define(const Line& line, int64_t number, ValueId id) {
    if (!ids_.emplace(number, id).second) line.refuse("%", number, " is made twice");
  }

  ValueId parse_use(Line& line) {
    line.require("%");
    const int64_t number = line.integer();
    const auto found = ids_.find(number);
    if (found == ids_.end()) line.refuse("%", number, " is not made before this line");
    return found->second;
  }

  void parse_node(Line& line) {
    std::vector<Declared> results;
    do results.push_back(parse_declared(line));
    while (line.take(","));
    line.require("=");
    const std::string_view name = line.word();
    const OpDef* op = name == repeat_op.name ? &repeat_op : find_op(name);
    if (!op) line.refuse("there is no op named ", name);
    ValueIds inputs;
    while (line.next_is('%')) inputs.push_back(parse_use(line));
    const Attrs attrs = line.take("{") ? parse_attrs(line) : Attrs();
    std::string scope;
    SegmentId segment;
    while (line.take("@")) {
      if (line.next_is('"')) {
        scope = line.quoted();
      } else {
        segment = parse_segment_use(line);
      }
    }
    const bool has_body = line.take("[");
    if (!line.at_end()) line.refuse("the line goes on where it should end");
    if (has_body != (op->role == OpRole::repeat))
      line.refuse("repeat, and no other op, has a body");
    if (depth_ == kMaxDepth) line.refuse("bodies are nested more than ", kMaxDepth, " deep");

    std::vector<TensorType> types;
    for (const Declared& result : results) types.push_back(result.type);
    std::shared_ptr<const Graph> body;
    if (has_body) body = std::make_shared<const Graph>(Parser(lines_, depth_ + 1).run());
    const NodeId node =
        graph_.add_node(*op, attrs, inputs, types, phase_, keep_scope_name(scope), std::move(body));
    graph_.nodes.back().segment = segment;
    for (size_t i = 0; i < results.size(); ++i)
      define(line, results[i].number, graph_.node(node).outputs[static_cast<int>(i)]);
  }

  Attrs parse_attrs(Line& line) {
    Attrs attrs;
    while (!line.take("}")) {
      const std::string_view name = keep_name(line.word());
      line.require("=");
      attrs.add({name, parse_value(line)});
    }
    return attrs;
  }

  static AttrValue parse_value(Line& line) {
    if (line.next_is('[')) return line.list();
    std::string text(line.word());
    if (text == "cuda" && line.take(":")) text += fmt::format(":{}", line.integer());
    if (text == "true" || text == "false") return text == "true";
    if (text == "cpu" || text == "null" || text.starts_with("cuda")) return parse_device(text);
    const char *begin = text.data(), *end = begin + text.size();
    int64_t integer = 0;
    if (const auto [at, status] = std::from_chars(begin, end, integer);
        status == std::errc() && at == end)
      return integer;
    double number = 0;
    if (const auto [at, status] = std::from_chars(begin, end, number);
        status == std::errc() && at == end)
      return number;
    return parse_dtype(text);
  }

  void parse_write(Line& line) {
    const size_t state = find_state(line, line.quoted());
    graph_.states[state].after = parse_use(line);
  }

  Lines& lines_;
  int depth_;
  Graph graph_;
  std::map<int64_t, ValueId> ids_;
  Phase phase_ = Phase::forward;
  bool returned_ = false;
};

}  // namespace

Graph parse_graph(std::string_view text) {
  Lines lines(text);
  Graph graph = Parser(lines).run();
  verify(graph, "parsing");
  return graph;
}

}  // namespace brrr::graph
