// What the analysis says about a Job: findings, the report around them, and the words of the contract (DESIGN section 6).
// Plain data without indices into the Job, so that a report can be written, merged and compared on its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"

namespace lockstep {

enum class Verdict : std::uint8_t {
  kConsistent,
  kMismatch,
  kImbalance,
  kOrder,
  kDeadlock,
  kOtherCause,
  kInsufficient,
};
std::string_view verdict_name(Verdict verdict);  ///< "consistent", "other_cause", ...

/// In falling order; the first three decide the verdict of the report.
enum class Severity : std::uint8_t {
  kCertain,
  kUndefinedBehaviour,
  kContractViolation,
  kPotential,
  kUnsafe,
  kNote,
};
std::string_view severity_name(Severity severity);
std::optional<Severity> severity_from_name(std::string_view name);

/// What the divergent ranks of a finding have in common.
enum class DivergentMeaning : std::uint8_t { kMinority, kExtra, kMissing, kAbsent, kBehind, kNoMajority };
std::string_view divergent_meaning_name(DivergentMeaning meaning);

/// One call, spelled out for a reader.
struct OperationView {
  std::int32_t rank = 0;
  std::string op{};                ///< snake_case kind
  std::string communicator{};      ///< name
  std::vector<std::int32_t> members{};
  std::optional<std::uint32_t> seq{};  ///< collectives: per communicator; point-to-point: per (communicator, sender, receiver)
  std::string count{};
  std::string datatype{};
  std::string redop{};
  std::optional<std::int32_t> peer{};  ///< root or partner, a job rank
  std::string payload{};
  std::string label{};             ///< what a plan calls it
  std::vector<Frame> site{};       ///< innermost first
  std::string state{};             ///< "entered", ...; empty = not known
  std::string native_op{};
  std::optional<std::int64_t> native_seq{};
  std::string file{};              ///< where the evidence stands
  std::uint32_t line = 0;
};

/// A rank that stands still and the ranks it waits for; `waits_for` empty = it waits for nobody: a cause.
struct WaitFor {
  std::int32_t rank = 0;
  OperationView operation{};
  std::vector<std::int32_t> waits_for{};
  std::string why{};  ///< for a sink: "exited with status 0", "left no record", ...; else empty
};

struct CallCounts {
  std::string communicator{};
  std::vector<std::int32_t> members{};
  std::string call_site{};                        ///< empty = all calls of the communicator
  std::map<std::int32_t, std::uint64_t> by_rank{};
};

struct Evidence {
  std::string file{};
  std::uint32_t line = 0;  ///< 0 = the file as a whole
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

struct Finding {
  Verdict verdict = Verdict::kInsufficient;
  std::string finding_class{};  ///< id in schemas/classes.json
  Severity severity = Severity::kNote;
  std::string title{};          ///< one line, without the verdict: "ranks 0 and 1 wait for each other"
  std::vector<std::string> models{};  ///< lazy, eager, blocking, coupled: those under which it holds; empty = it needs none
  struct CommunicatorView {
    std::string id{};
    std::string name{};
    std::vector<std::int32_t> ranks{};
  };
  std::optional<CommunicatorView> communicator{};
  struct Position {
    std::uint32_t seq = 0;
    std::string op{};
    std::optional<std::int64_t> native_seq{};
    std::string native_op{};
  };
  std::optional<Position> position{};
  std::vector<std::int32_t> divergent_ranks{};  ///< sorted job ranks
  std::optional<DivergentMeaning> divergent_meaning{};
  std::vector<OperationView> operations{};  ///< one example per side of a disagreement, the divergent side first
  std::vector<CallCounts> counts{};
  std::vector<WaitFor> wait_for{};          ///< causes first, then victims
  std::size_t wait_for_omitted = 0;         ///< victims left out of `wait_for`
  std::string explanation{};                ///< the cause, in the job's words; may have several sentences
  std::string fix{};
  std::vector<Evidence> evidence{};
  /// Nodes whose own evidence (Xid, ECC, a lost link, an OOM kill) is the cause; never of a finding about calls.
  struct Nodes {
    bool told = false;  ///< there is such evidence, even if it says neither host nor rank
    std::vector<std::string> hosts{};
    std::vector<std::int32_t> ranks{};
  } nodes{};
};

/// True where the finding makes the verdict; the others stand beside it.
inline bool decides(const Finding& finding) { return finding.severity <= Severity::kContractViolation; }

enum class Confidence : std::uint8_t { kCertain, kLikely, kPossible };
std::string_view confidence_name(Confidence confidence);

struct Suspect {
  std::int32_t rank = 0;
  std::string role{};  ///< "cause" or "victim"
  Confidence confidence = Confidence::kPossible;
  Place place{};
  std::string pod{};
};

enum class Action : std::uint8_t { kFixCode, kInspectNodes, kRestart, kCollectMore, kNone };
std::string_view action_name(Action action);

enum class ProgressState : std::uint8_t { kEnded, kStalled, kAdvancing, kUnknown };
std::string_view progress_state_name(ProgressState state);

struct Report {
  Verdict verdict = Verdict::kInsufficient;
  struct Run {
    std::string name{};
    int attempt = 0;
    std::vector<std::string> others{};
  } run{};
  std::vector<Finding> findings{};  ///< cause first
  std::vector<Suspect> suspects{};
  Action action = Action::kNone;
  std::vector<std::int32_t> action_ranks{};
  std::vector<std::string> action_hosts{};  ///< kInspectNodes: the hosts
  struct Progress {
    ProgressState state = ProgressState::kUnknown;
    double stalled_for_s = 0;
  } progress{};
  std::string summary{};  ///< one line for a report without a deciding finding: what was compared
  std::vector<std::string> next_evidence{};
  struct Quality {
    std::optional<std::size_t> ranks_expected{};
    std::vector<std::int32_t> ranks_seen{};
    bool complete = true;
    std::vector<std::string> warnings{};
  } input_quality{};
};

/// One row of schemas/classes.json, which is compiled in.
struct FindingClass {
  std::string_view id;
  std::string_view taxonomy;  ///< "T01 T02": the classes of public reports that it covers
  std::string_view means;
  std::string_view arises;
  std::string_view fixed;
};
std::span<const FindingClass> finding_classes();      ///< in the order of the file: by kind of fault
const FindingClass* find_class(std::string_view id);  ///< nullptr: no such class

}  // namespace lockstep
