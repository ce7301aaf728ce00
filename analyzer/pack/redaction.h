// Takes names out of traces that are handed to others: parts of paths and host names become numbered tokens,
// equal names equal tokens.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "pack/trace_copy.h"

namespace lockstep {

/// One per pack, so that a name has one token in all of its traces. Calls, counts, ranks, function names and
/// times stay as they are.
class Redaction {
 public:
  Redaction(bool paths, bool hosts) : paths_(paths), hosts_(hosts) {}

  /// The names of hosts that `trace` mentions. Call it for every trace before the first apply().
  void learn(const TraceCopy& trace);
  /// A host that is known from elsewhere.
  void learn_host(std::string_view host);

  /// Replaces them in all side records. Side records of unknown kinds are dropped: nobody knows what they
  /// say.
  void apply(TraceCopy& trace);
  /// A name for the member that says no more than `copy`, to which it was applied:
  /// "<run>/<host>.<pid>.<start>.lst".
  static std::string member_name(const TraceCopy& copy);

 private:
  std::string path(std::string_view text);       // the whole text is a path or a file name
  std::string free_text(std::string_view text);  // paths and hosts may be anywhere in it
  std::string without_hosts(std::string_view text);
  std::string run(std::string_view text);
  std::string side_record(std::string_view record);

  bool paths_;
  bool hosts_;
  std::set<std::string, std::less<>> host_names_;
  std::map<std::string, std::string, std::less<>> host_tokens_;
  std::map<std::string, std::string, std::less<>> run_tokens_;
  std::map<std::string, std::string, std::less<>> path_tokens_;
};

}  // namespace lockstep
