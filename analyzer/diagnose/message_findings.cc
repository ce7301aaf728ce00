// See the header.
#include "diagnose/message_findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rank_ranges.h"
#include "diagnose/difference.h"
#include "diagnose/missing_parts.h"

namespace lockstep {
namespace {

/// Type, size and payload of a message; its name where none of them is known.
std::string contents(const Describer& describe, const Operation& operation) {
  const std::string text = describe.arguments(operation);
  const std::size_t name = op_name(operation.kind).size();
  return text.size() > name ? text.substr(name + 1) : text;
}

Finding pair_finding(const Describer& describe, const ChannelMatch& channel, std::uint32_t seq) {
  const Job& job = describe.job();
  const ProgramIndex sender = job.program_of_rank(channel.sender);
  const ProgramIndex receiver = job.program_of_rank(channel.receiver);
  const Operation& send = describe.operation(sender, channel.sends[seq]);
  const Operation& receive = describe.operation(receiver, channel.receives[seq]);
  const Difference what = compare_message(job, send, receive);
  Finding finding{.verdict = Verdict::kMismatch, .severity = Severity::kCertain};
  finding.finding_class = what == Difference::kPayload ? "payload_differs" : "message_differs";
  if (what == Difference::kDatatype) {
    const std::size_t bytes = datatype_bytes(job.datatype(send.datatype));
    const bool same_bytes = bytes != 0 && bytes == datatype_bytes(job.datatype(receive.datatype));
    const auto sent = operation_bytes(job, send);
    if ((same_bytes && send.count == receive.count) || (sent && sent == operation_bytes(job, receive))) finding.severity = Severity::kContractViolation;
  }
  finding.title = fmt::format("message #{} from rank {} to rank {} on {} is not what rank {} receives", seq, channel.sender,
                              channel.receiver, describe.communicator(channel.comm), channel.receiver);
  finding.explanation = fmt::format(
      "message #{} from rank {} to rank {} on {}: rank {} sends {}{}, rank {} receives {}{}; messages between two ranks pair "
      "in the order of the calls",
      seq, channel.sender, channel.receiver, describe.communicator(channel.comm), channel.sender, contents(describe, send),
      describe.from_site(send), channel.receiver, contents(describe, receive), describe.from_site(receive));
  finding.fix = what == Difference::kPayload
                    ? "let both ranks walk through their messages in the same order, or use one communicator for each kind of message"
                    : "agree on shape and datatype before the transfer, or send them first";
  finding.communicator = describe.communicator_view(channel.comm);
  finding.position = describe.position(receiver, channel.receives[seq]);
  finding.divergent_ranks = {std::min(channel.sender, channel.receiver), std::max(channel.sender, channel.receiver)};
  if (channel.sender == channel.receiver) finding.divergent_ranks.pop_back();
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  finding.operations = {describe.view(sender, channel.sends[seq]), describe.view(receiver, channel.receives[seq])};
  finding.evidence = {describe.evidence(sender, channel.sends[seq]), describe.evidence(receiver, channel.receives[seq])};
  return finding;
}

Finding unmatched_finding(const Describer& describe, const ChannelMatch& channel) {
  const Job& job = describe.job();
  const bool send_left = channel.sends.size() > channel.receives.size();
  const auto seq = static_cast<std::uint32_t>(std::min(channel.sends.size(), channel.receives.size()));
  const std::int32_t rank = send_left ? channel.sender : channel.receiver;
  const std::int32_t partner = send_left ? channel.receiver : channel.sender;
  const ProgramIndex program = job.program_of_rank(rank);
  const std::uint32_t call = send_left ? channel.sends[seq] : channel.receives[seq];
  const Operation& operation = describe.operation(program, call);
  const std::string with_tag = channel.tag == kNoTag || channel.tag == kAnyTag ? "" : fmt::format(" with tag {}", channel.tag);
  Finding finding{.verdict = Verdict::kImbalance, .finding_class = "message_unmatched", .severity = Severity::kCertain};
  finding.title = fmt::format("{} #{} of rank {} {} rank {} on {} has no partner", op_name(operation.kind), seq, rank,
                              send_left ? "to" : "from", partner, describe.communicator(channel.comm));
  finding.explanation = fmt::format(
      "rank {} sends {} to rank {} on {}, rank {} receives {} from it; {} {}{} has no partner", channel.sender,
      fmt::format("{} message{}{}", channel.sends.size(), channel.sends.size() == 1 ? "" : "s", with_tag), channel.receiver,
      describe.communicator(channel.comm), channel.receiver, channel.receives.size(), describe.call(program, call),
      describe.arguments(operation).substr(op_name(operation.kind).size()), describe.from_site(operation));
  finding.fix = fmt::format("let rank {} {} it, or leave it out on rank {}: both sides must decide from the same facts", partner,
                            send_left ? "receive" : "send", rank);
  finding.communicator = describe.communicator_view(channel.comm);
  finding.position = describe.position(program, call);
  finding.divergent_ranks = {std::min(rank, partner), std::max(rank, partner)};
  if (rank == partner) finding.divergent_ranks.pop_back();
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  finding.operations = {describe.view(program, call)};
  finding.evidence = {describe.evidence(program, call)};
  return finding;
}

/// The rank that lacks calls can make none any more.
bool lack_is_proven(const Job& job, const ChannelMatch& channel) {
  if (channel.undecided || channel.sends.size() == channel.receives.size()) return false;
  const std::int32_t lacking = channel.sends.size() > channel.receives.size() ? channel.receiver : channel.sender;
  const ProgramIndex program = job.program_of_rank(lacking);
  if (program == kNoProgram) return job.end_of_rank(lacking).kind == EndKind::kExited;
  return calls_no_more(job, job.program(program));
}

}  // namespace

std::vector<Draft> message_drafts(const Describer& describe) {
  std::vector<Draft> drafts;
  for (const ChannelMatch& channel : describe.match().channels) {
    Draft draft{.comm = channel.comm, .message = Draft::Message{channel.sender, channel.receiver, channel.tag}};
    if (channel.first_difference) {
      draft.first_call = channel.sends[*channel.first_difference];
      draft.finding = pair_finding(describe, channel, *channel.first_difference);
    } else if (lack_is_proven(describe.job(), channel)) {
      draft.message->unmatched = true;
      draft.message->send_left = channel.sends.size() > channel.receives.size();
      const std::size_t seq = std::min(channel.sends.size(), channel.receives.size());
      draft.first_call = draft.message->send_left ? channel.sends[seq] : channel.receives[seq];
      draft.at_end = true;
      draft.finding = unmatched_finding(describe, channel);
    } else {
      continue;
    }
    drafts.push_back(std::move(draft));
  }
  join_missing_parts(describe, drafts);
  return drafts;
}

}  // namespace lockstep
