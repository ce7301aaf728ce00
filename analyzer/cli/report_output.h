// Where a report goes and in which forms: the options --format and --output of all commands that write one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/report_format.h"

namespace CLI {
class App;
}

namespace lockstep {

struct Destination {
  const ReportFormat* format = nullptr;
  std::string path{};  ///< empty = standard output
};

class ReportOutput {
 public:
  void add_options(CLI::App& app);
  Result<std::vector<Destination>> destinations() const;

 private:
  std::string format_ = "text";
  std::vector<std::string> outputs_{};
};

/// What a command says beyond its report: lines at the end of the text, members of the JSON. Other formats have no place
/// for it.
struct ReportAddition {
  std::string text{};
  nlohmann::ordered_json json{};  ///< null or an object
};

/// Every destination is tried, so that a full disk for one does not cost the others. False: one of them
/// failed.
bool write_report(const Report& report, const std::vector<Destination>& destinations,
                  const ReportAddition& addition = {});

std::vector<std::string_view> severity_names();

}  // namespace lockstep
