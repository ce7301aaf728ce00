#include "cli/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#ifdef LOCKSTEP_HAVE_YAML
#include <yaml-cpp/yaml.h>
#endif

namespace lockstep {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::string_view kBlank = " \t\r\n";

Error too_large(const std::string& source) {
  return {ErrorCode::kUnsupported, fmt::format("{}: larger than {} bytes", source, kMaxBytes)};
}

/// Words of a shell: quotes, backslashes, comments to the end of the line.
std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c == '\\' && quote == '"' && i + 1 < text.size() ? text[++i] : c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == '\\' && i + 1 < text.size()) {
      if (text[++i] == '\n' || text[i] == '\r') continue;  // the line goes on
      word += text[i];
      in_word = true;
    } else if (c == '#' && !in_word) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (kBlank.find(c) == std::string_view::npos) {
      word += c;
      in_word = true;
    } else if (in_word) {
      words.push_back(std::move(word));
      word.clear();
      in_word = false;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string python_name(std::string_view option) {
  std::string name(option.substr(0, 200));
  std::ranges::replace(name, '-', '_');
  return name;
}

#ifdef LOCKSTEP_HAVE_YAML
constexpr std::size_t kMostEntries = 10'000;

/// Leaves of sections within sections; lists are values.
void flatten(const YAML::Node& node, int depth, std::map<std::string, std::string, std::less<>>& values, std::size_t& entries,
             std::string& problem) {
  constexpr int kDeepest = 4;
  for (const auto& entry : node) {
    if (++entries > kMostEntries) problem = fmt::format("more than {} entries", kMostEntries);
    if (!problem.empty()) return;
    if (!entry.first.IsScalar()) continue;
    const std::string name = python_name(entry.first.Scalar());
    const YAML::Node& value = entry.second;
    if (value.IsMap() && depth < kDeepest) {
      flatten(value, depth + 1, values, entries, problem);
      continue;
    }
    std::string text;
    if (value.IsScalar()) text = value.Scalar();
    if (value.IsSequence()) {
      for (const YAML::Node& item : value) {
        if (++entries > kMostEntries) break;
        text += (text.empty() ? "[" : ",") + (item.IsScalar() ? item.Scalar() : std::string("?"));
      }
      text += ']';
    }
    if (text.empty() || text == "null" || text == "~") continue;
    const auto [known, is_new] = values.emplace(name, text);
    if (!is_new && known->second != text)
      problem = fmt::format("{} is given twice: {} and {}", name, known->second, text);
  }
}
#endif

}  // namespace

Result<MegatronArguments> MegatronArguments::from_command_line(std::string_view text, std::string source) {
  if (text.size() > kMaxBytes) return too_large(source);
  MegatronArguments arguments;
  arguments.source_ = std::move(source);
  arguments.dashes_ = true;
  std::string name;
  for (std::string& word : split_words(text)) {
    while (word.ends_with(')') && word.find('(') == std::string::npos) word.pop_back();  // of a shell's array
    if (const std::size_t dashes = word.find_first_not_of("(-"); word.find("--") < 2 && dashes != std::string::npos) {
      const std::size_t equals = word.find('=', dashes);
      name = python_name(std::string_view(word).substr(dashes, equals - dashes));
      arguments.values_[name] = equals == std::string::npos ? "true" : word.substr(equals + 1);
      if (equals != std::string::npos) name.clear();
    } else if (!name.empty() && !word.empty()) {
      arguments.values_[name] = word;
      name.clear();
    }
  }
  return arguments;
}

Result<MegatronArguments> MegatronArguments::from_yaml(std::string_view text, std::string source) {
  if (text.size() > kMaxBytes) return too_large(source);
#ifdef LOCKSTEP_HAVE_YAML
  MegatronArguments arguments;
  std::string problem;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    std::size_t entries = 0;
    if (!root.IsMap())
      problem = "must be a mapping";
    else
      flatten(root, 0, arguments.values_, entries, problem);
  } catch (const YAML::Exception& error) {
    return Error{ErrorCode::kMalformed, fmt::format("{}:{}: no YAML: {}", source, error.mark.line + 1, error.msg)};
  }
  if (!problem.empty()) return Error{ErrorCode::kMalformed, fmt::format("{}: {}", source, problem)};
  arguments.source_ = std::move(source);
  return arguments;
#else
  return Error{ErrorCode::kUnsupported, fmt::format("{}: this lockstep was built without yaml-cpp", source)};
#endif
}

std::string MegatronArguments::text(std::string_view name, std::string_view otherwise) const {
  const auto found = find(name);
  return found == values_.end() ? std::string(otherwise) : found->second;
}

std::int64_t MegatronArguments::integer(std::string_view name, std::int64_t otherwise, std::int64_t lowest,
                                        std::int64_t highest) {
  const auto found = find(name);
  if (found == values_.end() || found->second == "None") return otherwise;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec == std::errc{} && done.ptr == text.data() + text.size() && value >= lowest && value <= highest) return value;
  fail(name, text.starts_with('$') ? fmt::format("{} is a variable of the shell: write its value", text.substr(0, 80))
                                   : fmt::format("must be an integer between {} and {}, not '{}'", lowest, highest, text.substr(0, 80)));
  return otherwise;
}

double MegatronArguments::number(std::string_view name, double otherwise) {
  const auto found = find(name);
  if (found == values_.end() || found->second == "None") return otherwise;
  const std::string& text = found->second;
  double value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec == std::errc{} && done.ptr == text.data() + text.size() && std::isfinite(value)) return value;
  fail(name, fmt::format("must be a number, not '{}'", text.substr(0, 80)));
  return otherwise;
}

bool MegatronArguments::flag(std::string_view name) {
  const std::string value = text(name, "false");
  if (value == "true" || value == "True" || value == "1") return true;
  if (value == "false" || value == "False" || value == "0" || value == "None") return false;
  // On a command line what follows a flag may be anything.
  if (dashes_) return true;
  fail(name, fmt::format("must be true or false, not '{}'", value.substr(0, 80)));
  return false;
}

std::vector<std::string> MegatronArguments::unasked() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_)
    if (!asked_.contains(name)) names.push_back(name);
  return names;
}

std::string MegatronArguments::place(std::string_view name) const {
  std::string shown(name);
  if (dashes_) std::ranges::replace(shown, '_', '-');
  return fmt::format("{}: {}{}", source_, dashes_ ? "--" : "", shown);
}

void MegatronArguments::fail(std::string_view name, std::string_view message) {
  if (!error_) error_ = Error{ErrorCode::kMalformed, fmt::format("{}: {}", place(name), message)};
}

}  // namespace lockstep
