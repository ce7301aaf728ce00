// The words of the report contract (DESIGN section 6) for the enums of finding.h.
#include "diagnose/finding.h"

namespace lockstep {

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kConsistent:
      return "consistent";
    case Verdict::kMismatch:
      return "mismatch";
    case Verdict::kImbalance:
      return "imbalance";
    case Verdict::kOrder:
      return "order";
    case Verdict::kDeadlock:
      return "deadlock";
    case Verdict::kOtherCause:
      return "other_cause";
    case Verdict::kInsufficient:
      return "insufficient";
  }
  return "insufficient";
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kCertain:
      return "certain";
    case Severity::kUndefinedBehaviour:
      return "undefined_behaviour";
    case Severity::kContractViolation:
      return "contract_violation";
    case Severity::kPotential:
      return "potential";
    case Severity::kUnsafe:
      return "unsafe";
    case Severity::kNote:
      return "note";
  }
  return "note";
}

std::optional<Severity> severity_from_name(std::string_view name) {
  for (const Severity severity :
       {Severity::kCertain, Severity::kUndefinedBehaviour, Severity::kContractViolation, Severity::kPotential,
        Severity::kUnsafe, Severity::kNote})
    if (name == severity_name(severity)) return severity;
  return std::nullopt;
}

std::string_view divergent_meaning_name(DivergentMeaning meaning) {
  switch (meaning) {
    case DivergentMeaning::kMinority:
      return "minority";
    case DivergentMeaning::kExtra:
      return "extra";
    case DivergentMeaning::kMissing:
      return "missing";
    case DivergentMeaning::kAbsent:
      return "absent";
    case DivergentMeaning::kBehind:
      return "behind";
    case DivergentMeaning::kNoMajority:
      return "no_majority";
  }
  return "no_majority";
}

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kCertain:
      return "certain";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kPossible:
      return "possible";
  }
  return "possible";
}

std::string_view action_name(Action action) {
  switch (action) {
    case Action::kFixCode:
      return "fix_code";
    case Action::kInspectNodes:
      return "inspect_nodes";
    case Action::kRestart:
      return "restart";
    case Action::kCollectMore:
      return "collect_more";
    case Action::kNone:
      return "none";
  }
  return "none";
}

std::string_view progress_state_name(ProgressState state) {
  switch (state) {
    case ProgressState::kEnded:
      return "ended";
    case ProgressState::kStalled:
      return "stalled";
    case ProgressState::kAdvancing:
      return "advancing";
    case ProgressState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace lockstep
