// Arguments of a Megatron run by name, from its command line or from YAML.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

/// Names as in Python, without dashes: "num_layers". Values as written; a flag alone is "true". Of an option that is
/// given twice the last counts.
class MegatronArguments {
 public:
  /// Command lines, launcher's included: words as a shell would split them, `--name value` and `--name=value`; what is no
  /// option is passed over, and so are options that decide nothing here.
  static Result<MegatronArguments> from_command_line(std::string_view text, std::string source);
  /// A mapping, or sections of one (Megatron's --yaml-cfg, NeMo's model): sections bear no meaning of their own.
  static Result<MegatronArguments> from_yaml(std::string_view text, std::string source);

  bool has(std::string_view name) const { return find(name) != values_.end(); }
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// The default where it is missing; the first value that is none, or out of range, becomes error().
  std::int64_t integer(std::string_view name, std::int64_t otherwise, std::int64_t lowest, std::int64_t highest);
  double number(std::string_view name, double otherwise);
  bool flag(std::string_view name);

  /// Names that were given and that nobody asked for so far.
  std::vector<std::string> unasked() const;
  /// "run.sh: --num-layers": as the user wrote it.
  std::string place(std::string_view name) const;
  /// Keeps the first.
  void fail(std::string_view name, std::string_view message);
  const std::optional<Error>& error() const { return error_; }
  const std::string& source() const { return source_; }

 private:
  using Values = std::map<std::string, std::string, std::less<>>;
  Values::const_iterator find(std::string_view name) const {
    asked_.emplace(name);
    return values_.find(name);
  }

  Values values_{};
  mutable std::set<std::string, std::less<>> asked_{};
  std::string source_{};
  bool dashes_ = false;  ///< names were options
  std::optional<Error> error_{};
};

}  // namespace lockstep
