// Plain data as a parser of pickle or JSON leaves it: numbers, text, lists and dictionaries on a stack and in an arena. What is
// built is handed out piece by piece, so that a document of any length needs little memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

enum class PlainTag : std::uint8_t { kNone, kBool, kInteger, kReal, kText, kList, kDictionary, kTaken };

/// 16 bytes. Text points into the input (pickle) or into PlainBuilder's text (JSON); a container is a number of a node.
struct PlainValue {
  PlainTag tag = PlainTag::kNone;
  std::uint32_t size = 0;  ///< of text
  union {
    std::int64_t integer = 0;
    double real;
    const char* text;
    std::uint64_t node;
  };

  PlainValue() = default;
  explicit PlainValue(PlainTag its_tag, std::size_t its_size = 0) : tag(its_tag), size(static_cast<std::uint32_t>(its_size)) {}

  static PlainValue of_bool(bool value) {
    PlainValue plain(PlainTag::kBool);
    plain.integer = value ? 1 : 0;
    return plain;
  }
  static PlainValue of_integer(std::int64_t value) {
    PlainValue plain(PlainTag::kInteger);
    plain.integer = value;
    return plain;
  }
  static PlainValue of_real(double value) {
    PlainValue plain(PlainTag::kReal);
    plain.real = value;
    return plain;
  }
  static PlainValue of_text(std::string_view value) {
    PlainValue plain(PlainTag::kText, value.size());
    plain.text = value.data();
    return plain;
  }
  bool is_container() const { return tag == PlainTag::kList || tag == PlainTag::kDictionary; }
  /// Empty for what is no text.
  std::string_view as_text() const { return tag == PlainTag::kText ? std::string_view(text, size) : std::string_view{}; }
  /// The number, also where it stands as text ("12", as JSON dumps have it); `otherwise` for anything else.
  std::int64_t as_integer(std::int64_t otherwise) const;
  bool as_bool() const { return (tag == PlainTag::kBool || tag == PlainTag::kInteger) && integer != 0; }
};

class PlainValues;

/// Takes the items of the document's list of records as soon as each is complete.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  /// `fields`: keys and values in turn; valid during the call only.
  virtual void record(std::span<const PlainValue> fields, const PlainValues& values) = 0;
};

/// The contents of containers.
class PlainValues {
 public:
  /// Of a dictionary: keys and values in turn. Empty for what is no container.
  std::span<const PlainValue> items(const PlainValue& container) const {
    if (!container.is_container()) return {};
    const Node& node = nodes_[container.node];
    return {cells_.data() + node.first, node.size};
  }
  /// The container stays until the end, under its number. The others may go with the record that they belong to.
  bool is_kept(const PlainValue& container) const { return container.is_container() && container.node < pinned_; }

 protected:
  struct Node {
    std::uint64_t first = 0;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };
  std::vector<Node> nodes_;
  std::vector<PlainValue> cells_;
  std::uint64_t pinned_ = 0;  // nodes before this number stay
};

/// The stack machine that both parsers drive: containers are opened, their items pushed behind a mark, and put in.
///
/// The items of the list under the key "entries" of the outermost dictionary go to the sink and are not kept. All operations
/// return false where the input is to be refused; error() then says why. Memory is bounded by kMostValues.
class PlainBuilder : public PlainValues {
 public:
  static constexpr std::size_t kMostValues = std::size_t{1} << 26;
  static constexpr std::size_t kMostMarks = 200;  ///< depth of nesting

  explicit PlainBuilder(RecordSink& sink) : sink_(sink) {}

  bool push(PlainValue value) {
    if (stack_.size() == stack_.capacity()) return grow_and_push(value);
    stack_.push_back(value);
    return true;
  }
  bool push_container(PlainTag tag);
  bool mark();
  bool pop();
  bool pop_mark();
  /// The items behind the last mark go into the list or dictionary below it.
  bool append_marked();
  bool set_marked();
  /// The one item (or key and value) on top goes into the container below.
  bool append_one();
  bool set_one();
  /// The items behind the last mark, or the `count` on top, become a container of their own.
  bool collect_marked(PlainTag tag);
  bool collect(PlainTag tag, std::size_t count);

  /// Keeps a copy of text that does not outlive the parser's buffer.
  bool push_copied_text(std::string_view text);

  bool has_top() const { return !stack_.empty(); }
  PlainValue& top() { return stack_.back(); }
  /// The container may be named again later: it is kept.
  void pin_top() {
    if (has_top() && top().is_container()) pinned_ = nodes_.size();
  }
  std::string_view error() const { return error_; }

  /// Keys and values of the outermost dictionary so far, the list of records left out. Also of a document that breaks off.
  std::vector<std::pair<std::string_view, PlainValue>> outermost() const;

 private:
  bool refuse(std::string_view why) {
    error_ = why;
    return false;
  }
  bool grow_and_push(PlainValue value);
  bool is_record_list(std::size_t place) const;
  bool put(PlainValue container, std::span<const PlainValue> items);
  void take(std::span<const PlainValue> fields, PlainValue& record);

  RecordSink& sink_;
  std::vector<PlainValue> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::string_view error_;
  std::uint64_t record_node_ = 0;   // first node of the record that is being built
  std::uint64_t record_cell_ = 0;
  std::size_t record_text_ = 0;
  std::vector<std::vector<char>> text_;  // blocks: text stays where it is
  std::vector<PlainValue> scratch_;
};

}  // namespace lockstep
