// Prints the reports made by hand as one JSON array, for the schema test.
#include <cstdio>

#include "report/json.h"
#include "support/sample_reports.h"

int main() {
  const char* separator = "[";
  for (const lockstep::Report& report : lockstep::sample_reports()) {
    std::printf("%s%s", separator, lockstep::report_json(report).c_str());
    separator = ",";
  }
  std::puts("]");
}
