// The closed list of finding classes: schemas/classes.json, compiled in and parsed at the first use.
#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "classes_json.h"  // generated: kClassesJson
#include "diagnose/finding.h"

namespace lockstep {
namespace {

struct Table {
  std::deque<std::string> texts;  // deque: the views in `classes` stay valid while it grows
  std::vector<FindingClass> classes;

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }
};

std::string joined(const nlohmann::json& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ' ';
    text += word.get_ref<const std::string&>();
  }
  return text;
}

// The text is ours and a test reads it: a fault in it is an exception, not a Result.
Table parse_classes() {
  Table table;
  const auto document = nlohmann::json::parse(kClassesJson);
  for (const auto& entry : document.at("classes"))
    table.classes.push_back({.id = table.keep(entry.at("id")),
                             .taxonomy = table.keep(joined(entry.at("taxonomy"))),
                             .means = table.keep(entry.at("means")),
                             .arises = table.keep(entry.at("arises")),
                             .fixed = table.keep(entry.at("fixed"))});
  return table;
}

}  // namespace

std::span<const FindingClass> finding_classes() {
  static const Table table = parse_classes();
  return table.classes;
}

const FindingClass* find_class(std::string_view id) {
  const auto classes = finding_classes();
  const auto found = std::ranges::find(classes, id, &FindingClass::id);
  return found == classes.end() ? nullptr : &*found;
}

}  // namespace lockstep
