// One line of a JSONL call list as fields, parsed in place by simdjson; gives no meaning to them. For jsonl_calls only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The views are valid until the next line is parsed.
struct JsonlRecord {
  std::optional<std::int64_t> rank{};
  std::optional<std::int64_t> seq{};
  std::optional<std::int64_t> count{};   ///< "numel"
  std::optional<std::int64_t> root{};
  std::optional<std::int64_t> peer{};
  std::optional<std::int64_t> tag{};
  std::optional<bool> completed{};
  bool is_async = false;
  std::string_view op{};
  std::string_view group{};
  std::string_view dtype{};
  std::string_view redop{};
  std::string_view phase{};
  std::string_view site{};
  std::string_view ranks{};  ///< the JSON text of the list; empty = none
  std::string_view stack{};  ///< likewise
};

/// Owns the parser's buffers.
class JsonlRecordParser {
 public:
  /// Longer lines are refused: a parser needs several bytes of memory for a byte of input.
  static constexpr std::size_t kLongestLine = std::size_t{64} << 20;

  JsonlRecordParser();
  ~JsonlRecordParser();
  JsonlRecordParser(const JsonlRecordParser&) = delete;
  JsonlRecordParser& operator=(const JsonlRecordParser&) = delete;

  /// Empty on success, else what is wrong. MappedFile::kPaddingBytes bytes must be readable after `line`.
  std::string_view parse(std::string_view line, JsonlRecord& record);

  /// The elements of a JSON list that parse() found; false if it is something else, or an element is.
  bool parse_ranks(std::string_view text, std::vector<std::int32_t>& ranks);
  bool parse_strings(std::string_view text, std::vector<std::string>& strings);

 private:
  struct Parsers;
  std::unique_ptr<Parsers> parsers_;
};

}  // namespace lockstep
