// Texts of mismatches and of waits.
#include "nccl/report.h"

#include <unistd.h>

#include <cstdio>
#include <map>

#include "nccl/config.h"

namespace lockstep::standin {
namespace {

using namespace nccl;

const char* datatype_text(int datatype) {
  switch (datatype) {
#define X(name, value, bytes, text) \
  case value:                       \
    return text;
    LOCKSTEP_NCCL_DATATYPES(X)
#undef X
    default:
      return "?";
  }
}

std::string redop_text(int redop) {
  switch (redop) {
#define X(name, value, text) \
  case value:                \
    return text;
    LOCKSTEP_NCCL_REDOPS(X)
#undef X
    default:
      return "pre_mul_sum";
  }
}

/// Ends this process; the first of a communicator prints.
void end_with(const Segment& segment, const std::string& text) {
  segment.lock();
  const bool first = segment.header().reported == 0;
  segment.header().reported = 1;
  const std::string line = "lockstep rehearse: " + text + "\n";
  std::fflush(stdout);
  // Under the lock: another rank of this process would end it before the line is out.
  [[maybe_unused]] const ssize_t written = first ? write(STDERR_FILENO, line.data(), line.size()) : 0;
  segment.unlock();
  _exit(kExitMismatch);
}

std::string by_text(const std::map<std::string, std::vector<int>>& ranks_by_text) {
  std::string text;
  for (const auto& [said, ranks] : ranks_by_text)
    text += (text.empty() ? "" : "; ") + ranks_text(ranks) + ": " + said;
  return text;
}

bool detects() { return config().on_mismatch == OnMismatch::kDetect; }

}  // namespace

std::string text_of(const Signature& signature) {
  const auto kind = static_cast<OpKind>(signature.kind);
  std::string text = std::string(op_name(kind)) + " " + datatype_text(signature.datatype) + "[" +
                     std::to_string(signature.count) + "]";
  if (has_reduction(kind)) text += " " + redop_text(signature.redop);
  if (signature.root >= 0) text += " root=" + std::to_string(signature.root);
  return text;
}

std::string communicator_text(const ncclComm& comm) {
  char text[64];
  std::snprintf(text, sizeof text, "communicator #%d (%016llx, %d ranks)", comm.index,
                static_cast<unsigned long long>(comm.hash), comm.ranks);
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(ranks[i]);
  return text;
}

std::string describe_meeting(const ncclComm& comm, const ControlCall& call, const std::vector<int>& missing) {
  return "rank " + std::to_string(comm.rank) + " in " + std::string(op_name(static_cast<OpKind>(call.kind))) + " on " +
         communicator_text(comm) + (missing.empty() ? "" : ", without " + ranks_text(missing));
}

void report_bad_join(const Segment& segment, const ncclComm& comm, const char* what) {
  if (detects()) end_with(segment, "at the init of " + communicator_text(comm) + " rank " + std::to_string(comm.rank) + " " + what);
}

void report_control_mismatch(const ncclComm& comm, const std::vector<int>& who, const std::vector<ControlCall>& calls) {
  if (!detects()) return;
  std::map<std::string, std::vector<int>> ranks_by_text;
  for (std::size_t i = 0; i < calls.size(); ++i)
    ranks_by_text[std::string(op_name(static_cast<OpKind>(calls[i].kind))) + " with " + std::to_string(calls[i].agreed)]
        .push_back(who[i]);
  end_with(*comm.segment, "mismatch on " + communicator_text(comm) + " at host call #" + std::to_string(comm.controls - 1) +
                              ": " + by_text(ranks_by_text));
}

void report_collective_mismatch(const ncclComm& comm, std::uint64_t position, const std::vector<Signature>& by_rank) {
  if (!detects()) return;
  std::map<std::string, std::vector<int>> ranks_by_text;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    ranks_by_text[text_of(by_rank[rank])].push_back(static_cast<int>(rank));
  end_with(*comm.segment, "mismatch on " + communicator_text(comm) + " at collective #" + std::to_string(position) + ": " +
                              by_text(ranks_by_text));
}

void report_message_mismatch(const ncclComm& comm, int from, int to, std::uint64_t number, std::uint64_t send_bytes,
                             std::uint64_t receive_bytes) {
  if (!detects()) return;
  end_with(*comm.segment, "mismatch on " + communicator_text(comm) + " at message #" + std::to_string(number) + " from rank " +
                              std::to_string(from) + " to rank " + std::to_string(to) + ": sent " +
                              std::to_string(send_bytes) + " bytes, received " + std::to_string(receive_bytes));
}

}  // namespace lockstep::standin
