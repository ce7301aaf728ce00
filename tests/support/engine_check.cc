// See the header.
#include "support/engine_check.h"

#include <algorithm>
#include <optional>
#include <set>

#include "diagnose/diagnose.h"
#include "match/match.h"
#include "replay/replay.h"
#include "support/oracle.h"

namespace lockstep::testing {
namespace {

const Operation& call_at(const Job& job, CallRef ref) {
  return job.programs()[ref.program].operations[ref.index];
}

std::optional<std::uint32_t> first_difference(const Job& job, const Meetings& meetings, std::uint32_t comm) {
  for (const auto& [key, calls] : meetings.collectives) {
    if (key.first != comm) continue;
    for (const CallRef a : calls) {
      for (const CallRef b : calls) {
        if (!collective_disagreement(job, call_at(job, a), call_at(job, b)).empty()) {
          return static_cast<std::uint32_t>(key.second);
        }
      }
    }
  }
  return std::nullopt;
}

std::string check_communicators(const Job& job, const Meetings& meetings, const MatchResult& matched) {
  for (std::uint32_t comm = 0; comm < job.communicators().size(); ++comm) {
    const CommunicatorMatch& found = matched.communicators[comm];
    const std::string& name = job.communicators()[comm].name;
    if (found.first_difference != first_difference(job, meetings, comm)) return "first difference on " + name;
    for (const MemberCalls& member : found.members) {
      std::uint32_t made = 0;
      for (const auto& [key, calls] : meetings.collectives) {
        if (key.first != comm) continue;
        made +=
            static_cast<std::uint32_t>(std::ranges::count(calls, to_size(member.program), &CallRef::program));
      }
      if (made != member.count) return "number of calls on " + name;
    }
  }
  return "";
}

std::string check_channels(const Job& job, const Meetings& meetings, const MatchResult& matched) {
  if (matched.channels.size() != meetings.messages.size()) return "number of channels";
  for (const ChannelMatch& channel : matched.channels) {
    const auto expected = meetings.messages.find(
        {static_cast<std::uint32_t>(channel.comm), channel.sender, channel.receiver, channel.tag});
    if (expected == meetings.messages.end()) return "a channel that nobody uses";
    const auto& [sends, receives] = expected->second;
    if (channel.sends.size() != sends.size() || channel.receives.size() != receives.size())
      return "messages of a channel";
    std::optional<std::uint32_t> first;
    for (std::size_t i = 0; i < std::min(sends.size(), receives.size()) && !first; ++i) {
      if (message_disagreement(job, call_at(job, sends[i]), call_at(job, receives[i])).empty()) continue;
      first = static_cast<std::uint32_t>(i);
    }
    if (channel.first_difference != first) return "first difference of a channel";
  }
  return "";
}

std::set<std::size_t> blocked_programs(const ReplayResult& replayed) {
  std::set<std::size_t> blocked;
  for (const BlockedOperation& operation : replayed.blocked) blocked.insert(to_size(operation.program));
  return blocked;
}

std::string check_replay(const Job& job, const MatchResult& matched, OracleModel model,
                         bool trust_completion, bool as_written = false) {
  const ReplayResult replayed = replay(job, matched,
                                       {.model = static_cast<BlockingModel>(model),
                                        .trust_completion = trust_completion,
                                        .groups_as_written = as_written});
  const OracleRun expected = run_naively(job, model, trust_completion, as_written);
  const std::set<std::size_t> stuck(expected.stuck.begin(), expected.stuck.end());
  if (blocked_programs(replayed) == stuck) return "";
  std::string text = std::string(blocking_model_name(static_cast<BlockingModel>(model))) +
                     (trust_completion ? "" : ", completion ignored") + (as_written ? ", groups as written" : "") + ": stuck are";
  for (const std::size_t program : stuck) text += " " + std::to_string(program);
  text += "; replay says";
  for (const std::size_t program : blocked_programs(replayed)) text += " " + std::to_string(program);
  return text;
}

}  // namespace

std::string engine_against_oracle(const Job& job) {
  const MatchResult matched = match(job);
  const Meetings meetings = find_meetings(job);
  if (const std::string wrong = check_communicators(job, meetings, matched); !wrong.empty()) return wrong;
  if (const std::string wrong = check_channels(job, meetings, matched); !wrong.empty()) return wrong;
  for (const OracleModel model : kOracleModels) {
    for (const bool trust_completion : {true, false}) {
      const std::string wrong = check_replay(job, matched, model, trust_completion);
      if (!wrong.empty()) return wrong;
    }
  }
  return job.library() == Library::kNccl ? check_replay(job, matched, OracleModel::kLazy, true, true) : "";
}

std::string diagnosis_against_oracle(const Job& job) {
  const OracleVerdict expected = ask_oracle(job);
  const Report report = diagnose(job);
  if (expected.wrong == (report.verdict != Verdict::kConsistent)) return "";
  return "diagnose says " + std::string(verdict_name(report.verdict)) + ": the oracle " +
         (expected.wrong ? "calls it wrong, " + expected.reason : "finds nothing wrong");
}

}  // namespace lockstep::testing
