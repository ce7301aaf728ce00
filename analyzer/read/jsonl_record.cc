// simdjson on-demand parsing of a record's fields; error codes only, nothing throws.
#define SIMDJSON_EXCEPTIONS 0
#include "read/jsonl_record.h"

#include <simdjson.h>

#include "base/mapped_file.h"

namespace lockstep {
namespace {

namespace ondemand = simdjson::ondemand;
static_assert(MappedFile::kPaddingBytes >= simdjson::SIMDJSON_PADDING);

simdjson::padded_string_view padded(std::string_view text) {
  return simdjson::padded_string_view(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING);
}

std::string_view kind_of(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR:
      return "is not UTF-8";
    case simdjson::UNCLOSED_STRING:
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return "is cut";
    case simdjson::EMPTY:
      return "is empty";
    default:
      return "is no JSON object";
  }
}

/// A null counts as absent; false: the value is of another type.
template <class T>
bool take(simdjson::simdjson_result<ondemand::value>& value, T& target) {
  bool is_null = false;
  if (value.is_null().get(is_null) == simdjson::SUCCESS && is_null) return true;
  if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    std::int64_t number = 0;
    if (value.get_int64().get(number) != simdjson::SUCCESS) return false;
    target = number;
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return value.get_string().get(target) == simdjson::SUCCESS;
  } else {
    bool truth = false;
    if (value.get_bool().get(truth) != simdjson::SUCCESS) return false;
    target = truth;
  }
  return true;
}

bool take_list(simdjson::simdjson_result<ondemand::value>& value, std::string_view& target) {
  bool is_null = false;
  if (value.is_null().get(is_null) == simdjson::SUCCESS && is_null) return true;
  ondemand::array list;
  return value.get_array().get(list) == simdjson::SUCCESS && list.raw_json().get(target) == simdjson::SUCCESS;
}

/// False: the field has a value of another type than it should.
bool take_field(std::string_view key, simdjson::simdjson_result<ondemand::value>& value, JsonlRecord& record) {
  if (key == "rank") return take(value, record.rank);
  if (key == "seq") return take(value, record.seq);
  if (key == "op") return take(value, record.op);
  if (key == "group") return take(value, record.group);
  if (key == "numel") return take(value, record.count);
  if (key == "dtype") return take(value, record.dtype);
  if (key == "reduce_op") return take(value, record.redop);
  if (key == "root") return take(value, record.root);
  if (key == "peer") return take(value, record.peer);
  if (key == "tag") return take(value, record.tag);
  if (key == "phase") return take(value, record.phase);
  if (key == "site") return take(value, record.site);
  if (key == "async") return take(value, record.is_async);
  if (key == "completed") return take(value, record.completed);
  if (key == "ranks") return take_list(value, record.ranks);
  if (key == "stack") return take_list(value, record.stack);
  return true;
}

}  // namespace

struct JsonlRecordParser::Parsers {
  ondemand::parser line;
  ondemand::parser list;
};

JsonlRecordParser::JsonlRecordParser() : parsers_(std::make_unique<Parsers>()) {}
JsonlRecordParser::~JsonlRecordParser() = default;

std::string_view JsonlRecordParser::parse(std::string_view line, JsonlRecord& record) {
  record = {};
  if (line.size() > kLongestLine) return "is longer than 64 MiB";
  ondemand::document document;
  if (const auto error = parsers_->line.iterate(padded(line)).get(document)) return kind_of(error);
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return kind_of(error);
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return kind_of(error);
    auto value = field.value();
    if (value.error() != simdjson::SUCCESS) return kind_of(value.error());
    if (!take_field(key, value, record)) return "has a field of the wrong type";
  }
  // The parser has a place to stand only while tokens are left.
  if (document.current_location().error() == simdjson::SUCCESS) return "has text after the object";
  if (!record.rank || *record.rank < 0 || *record.rank > 0x7fffffff) return "has no rank from 0 to 2^31-1";
  if (record.op.empty()) return "has no op";
  return {};
}

bool JsonlRecordParser::parse_ranks(std::string_view text, std::vector<std::int32_t>& ranks) {
  ranks.clear();
  ondemand::document document;
  ondemand::array list;
  if (parsers_->list.iterate(padded(text)).get(document) != simdjson::SUCCESS) return false;
  if (document.get_array().get(list) != simdjson::SUCCESS) return false;
  for (auto element : list) {
    std::int64_t rank = 0;
    if (element.get_int64().get(rank) != simdjson::SUCCESS || rank < 0 || rank > 0x7fffffff) return false;
    ranks.push_back(static_cast<std::int32_t>(rank));
  }
  return true;
}

bool JsonlRecordParser::parse_strings(std::string_view text, std::vector<std::string>& strings) {
  strings.clear();
  ondemand::document document;
  ondemand::array list;
  if (parsers_->list.iterate(padded(text)).get(document) != simdjson::SUCCESS) return false;
  if (document.get_array().get(list) != simdjson::SUCCESS) return false;
  for (auto element : list) {
    std::string_view string;
    if (element.get_string().get(string) != simdjson::SUCCESS) return false;
    strings.emplace_back(string);
  }
  return true;
}

}  // namespace lockstep
