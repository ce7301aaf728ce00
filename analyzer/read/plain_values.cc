// See the header.
#include "read/plain_values.h"

#include <algorithm>
#include <charconv>

namespace lockstep {

std::int64_t PlainValue::as_integer(std::int64_t otherwise) const {
  if (tag == PlainTag::kInteger || tag == PlainTag::kBool) return integer;
  if (tag != PlainTag::kText) return otherwise;
  std::int64_t value = 0;
  const char* const end = text + size;
  const auto [at, problem] = std::from_chars(text, end, value);
  return problem == std::errc{} && at == end ? value : otherwise;
}

/// Apart, so that the push of a value that has room is some instructions at each place.
bool PlainBuilder::grow_and_push(PlainValue value) {
  if (stack_.size() >= kMostValues) return refuse("has too many values");
  stack_.push_back(value);
  return true;
}

bool PlainBuilder::push_container(PlainTag tag) {
  if (nodes_.size() >= kMostValues) return refuse("has too many lists and dictionaries");
  // Where a record begins, all that was needed for the one before it only may go.
  const std::size_t below = marks_.empty() ? 0 : marks_.back();
  const bool begins_record =
      tag == PlainTag::kDictionary &&
      ((!stack_.empty() && is_record_list(stack_.size() - 1)) || (below > 0 && stack_.size() >= below && is_record_list(below - 1)));
  if (begins_record) {
    record_node_ = nodes_.size();
    record_cell_ = cells_.size();
    record_text_ = text_.size();
  }
  PlainValue value(tag);
  value.node = nodes_.size();
  nodes_.push_back({.first = cells_.size()});
  return push(value);
}

bool PlainBuilder::mark() {
  if (marks_.size() >= kMostMarks) return refuse("is nested too deep");
  marks_.push_back(stack_.size());
  return true;
}

bool PlainBuilder::pop() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) return refuse("takes a value from an empty stack");
  stack_.pop_back();
  return true;
}

bool PlainBuilder::pop_mark() {
  if (marks_.empty()) return refuse("goes back to a mark that is not there");
  stack_.resize(marks_.back());
  marks_.pop_back();
  return true;
}

/// The value at `place` of the stack is the list of records: the value of "entries" in the outermost dictionary.
bool PlainBuilder::is_record_list(std::size_t place) const {
  if (place < 2 || stack_[place].tag != PlainTag::kList || stack_[0].tag != PlainTag::kDictionary) return false;
  if (stack_[place - 1].as_text() != "entries") return false;
  // At most the mark of the outermost dictionary lies below it.
  if (marks_.empty() || marks_.front() > place) return place == 2;
  return marks_.front() == 1 && (marks_.size() < 2 || marks_[1] > place);
}

bool PlainBuilder::put(PlainValue container, std::span<const PlainValue> items) {
  if (items.empty()) return true;
  if (cells_.size() + items.size() > kMostValues) return refuse("has too many values");
  Node& node = nodes_[container.node];
  const std::size_t needed = node.size + items.size();
  if (needed > node.capacity) {
    const bool is_last = node.first + node.capacity == cells_.size();
    if (node.size == 0 || is_last) {
      if (node.size == 0) node.first = cells_.size();
      cells_.resize(node.first + needed);
      node.capacity = static_cast<std::uint32_t>(needed);
    } else {
      const std::size_t room = std::max(needed, 2 * static_cast<std::size_t>(node.capacity));
      if (cells_.size() + room > kMostValues) return refuse("has too many values");
      const std::uint64_t moved = cells_.size();
      cells_.resize(moved + room);
      std::copy_n(cells_.begin() + static_cast<std::ptrdiff_t>(node.first), node.size,
                  cells_.begin() + static_cast<std::ptrdiff_t>(moved));
      node.first = moved;
      node.capacity = static_cast<std::uint32_t>(room);
    }
  }
  std::ranges::copy(items, cells_.begin() + static_cast<std::ptrdiff_t>(node.first + node.size));
  node.size = static_cast<std::uint32_t>(needed);
  return true;
}

void PlainBuilder::take(std::span<const PlainValue> fields, PlainValue& record) {
  sink_.record(fields, *this);
  record.tag = PlainTag::kTaken;
  if (pinned_ > record_node_ || record_node_ >= nodes_.size()) return;
  nodes_.resize(record_node_);
  cells_.resize(record_cell_);
  if (text_.size() > record_text_) text_.resize(record_text_);
}

bool PlainBuilder::append_marked() {
  if (marks_.empty() || marks_.back() == 0) return refuse("adds to a list that is not there");
  const std::size_t at = marks_.back();
  const PlainValue list = stack_[at - 1];
  if (list.tag != PlainTag::kList) return refuse("adds to what is no list");
  const bool records = is_record_list(at - 1);
  if (records) {
    for (std::size_t i = at; i < stack_.size(); ++i) {
      if (stack_[i].tag != PlainTag::kDictionary) continue;
      scratch_.assign(items(stack_[i]).begin(), items(stack_[i]).end());
      sink_.record(scratch_, *this);
    }
  } else if (!put(list, std::span(stack_).subspan(at))) {
    return false;
  }
  return pop_mark();
}

bool PlainBuilder::append_one() {
  if (stack_.size() < 2 || (!marks_.empty() && marks_.back() + 2 > stack_.size())) return refuse("adds to a list that is not there");
  const std::size_t at = stack_.size() - 1;
  if (stack_[at - 1].tag != PlainTag::kList) return refuse("adds to what is no list");
  if (is_record_list(at - 1)) {
    if (stack_[at].tag == PlainTag::kDictionary) {
      scratch_.assign(items(stack_[at]).begin(), items(stack_[at]).end());
      sink_.record(scratch_, *this);
    }
  } else if (!put(stack_[at - 1], std::span(stack_).subspan(at))) {
    return false;
  }
  stack_.pop_back();
  return true;
}

bool PlainBuilder::set_marked() {
  if (marks_.empty() || marks_.back() == 0) return refuse("sets fields of a dictionary that is not there");
  const std::size_t at = marks_.back();
  PlainValue& dictionary = stack_[at - 1];
  if (dictionary.tag != PlainTag::kDictionary || (stack_.size() - at) % 2 != 0) return refuse("sets fields of what is no dictionary");
  const std::size_t outer = marks_.size() < 2 ? 0 : marks_[marks_.size() - 2];
  // A record is an item behind the list's mark, or the single one right above the list.
  const bool in_marked = outer > 0 && at - 1 >= outer && is_record_list(outer - 1);
  const bool above_list = at >= 2 && is_record_list(at - 2);
  if ((in_marked || above_list) && nodes_[dictionary.node].size == 0) {
    take(std::span(stack_).subspan(at), dictionary);
  } else if (!put(dictionary, std::span(stack_).subspan(at))) {
    return false;
  }
  return pop_mark();
}

bool PlainBuilder::set_one() {
  if (stack_.size() < 3 || (!marks_.empty() && marks_.back() + 3 > stack_.size()))
    return refuse("sets fields of a dictionary that is not there");
  const std::size_t at = stack_.size() - 2;
  if (stack_[at - 1].tag != PlainTag::kDictionary) return refuse("sets fields of what is no dictionary");
  if (!put(stack_[at - 1], std::span(stack_).subspan(at))) return false;
  stack_.resize(at);
  return true;
}

bool PlainBuilder::collect(PlainTag tag, std::size_t count) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() < floor + count) return refuse("takes a value from an empty stack");
  if (nodes_.size() >= kMostValues) return refuse("has too many lists and dictionaries");
  PlainValue value(tag);
  value.node = nodes_.size();
  nodes_.push_back({.first = cells_.size()});
  if (!put(value, std::span(stack_).last(count))) return false;
  stack_.resize(stack_.size() - count);
  return push(value);
}

bool PlainBuilder::collect_marked(PlainTag tag) {
  if (marks_.empty()) return refuse("goes back to a mark that is not there");
  const std::size_t count = stack_.size() - marks_.back();
  marks_.pop_back();
  if (tag == PlainTag::kDictionary && count % 2 != 0) return refuse("has a key without a value");
  return collect(tag, count);
}

bool PlainBuilder::push_copied_text(std::string_view text) {
  constexpr std::size_t kBlock = 4096;
  if (text_.empty() || text_.size() == record_text_ || text_.back().capacity() - text_.back().size() < text.size()) {
    if (text_.size() >= kMostValues) return refuse("has too much text");
    text_.emplace_back().reserve(std::max(kBlock, text.size()));
  }
  std::vector<char>& block = text_.back();
  const char* const start = block.data() + block.size();
  block.insert(block.end(), text.begin(), text.end());
  return push(PlainValue::of_text({start, text.size()}));
}

std::vector<std::pair<std::string_view, PlainValue>> PlainBuilder::outermost() const {
  std::vector<std::pair<std::string_view, PlainValue>> fields;
  if (stack_.empty() || stack_[0].tag != PlainTag::kDictionary) return fields;
  const auto add = [&](std::span<const PlainValue> pairs) {
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) fields.emplace_back(pairs[i].as_text(), pairs[i + 1]);
  };
  add(items(stack_[0]));
  // What was pushed and not yet put in when the document broke off.
  const std::size_t end = marks_.size() >= 2 ? marks_[1] - 1 : stack_.size();
  if (!marks_.empty() && marks_.front() == 1 && end > 1) add(std::span(stack_).subspan(1, end - 1));
  return fields;
}

}  // namespace lockstep
