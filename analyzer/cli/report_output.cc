// Destinations of reports.
#include "cli/report_output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/nearest.h"
#include "cli/output.h"

namespace lockstep {
namespace {

Error unknown_format(std::string_view name) {
  const auto names = report_format_names();
  return {ErrorCode::kUsage, fmt::format("unknown format '{}': one of {}{}", name, fmt::join(names, ", "),
                                         did_you_mean(name, names))};
}

Result<Destination> parse_output(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size())
    return Error{ErrorCode::kUsage, fmt::format("--output takes FORMAT=FILE, not '{}'", text)};
  const std::string_view name = std::string_view(text).substr(0, equals);
  const ReportFormat* format = find_report_format(name);
  if (format == nullptr) return unknown_format(name);
  return Destination{format, text.substr(equals + 1)};
}

Result<std::vector<Destination>> parse_destinations(const std::string& format_name,
                                                    const std::vector<std::string>& outputs) {
  const ReportFormat* format = find_report_format(format_name);
  if (format == nullptr) return unknown_format(format_name);
  std::vector<Destination> destinations{{format}};
  for (const std::string& output : outputs) {
    Result<Destination> destination = parse_output(output);
    if (!destination) return destination.error();
    destinations.push_back(*std::move(destination));
  }
  return destinations;
}

std::string with_addition(std::string text, std::string_view format, const ReportAddition& addition) {
  if (format == "text") return text + addition.text;
  if (format != "json" || addition.json.is_null()) return text;
  auto json = nlohmann::ordered_json::parse(text);
  json.update(addition.json);
  constexpr bool kAsciiOnly = true;
  return json.dump(2, ' ', kAsciiOnly, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

void ReportOutput::add_options(CLI::App& app) {
  app.add_option(
         "--format", format_,
         fmt::format("form of the report on standard output: {}", fmt::join(report_format_names(), ", ")))
      ->capture_default_str();
  app.add_option("--output", outputs_, "FORMAT=FILE: write the report to a file as well; may be repeated")
      ->allow_extra_args(false);
}

Result<std::vector<Destination>> ReportOutput::destinations() const {
  return parse_destinations(format_, outputs_);
}

bool write_report(const Report& report, const std::vector<Destination>& destinations,
                  const ReportAddition& addition) {
  bool arrived = true;
  for (const Destination& destination : destinations) {
    const bool to_stdout = destination.path.empty();
    const std::string text =
        with_addition(destination.format->write(report, to_stdout && stdout_takes_colour()), destination.format->name, addition);
    arrived = (to_stdout ? write_stdout(text) : write_file(destination.path, text)) && arrived;
  }
  return arrived;
}

std::vector<std::string_view> severity_names() {
  std::vector<std::string_view> names;
  for (int value = 0; value <= static_cast<int>(Severity::kNote); ++value)
    names.push_back(severity_name(static_cast<Severity>(value)));
  return names;
}

}  // namespace lockstep
