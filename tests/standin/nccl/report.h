// What the stand-in says on stderr: mismatches in mode `detect`, and where a rank stands when it is ended.
#pragma once

#include <string>
#include <vector>

#include "nccl/communicator.h"

namespace lockstep::standin {

inline constexpr int kExitMismatch = 123;  ///< of a process that mode `detect` ends

std::string text_of(const Signature& signature);
std::string communicator_text(const ncclComm& comm);
std::string ranks_text(const std::vector<int>& ranks);
std::string describe_meeting(const ncclComm& comm, const ControlCall& call, const std::vector<int>& missing);

// In mode `detect` these say what they saw, once a communicator, and end the process; in the others they do nothing.
// The segment must not be locked.
void report_bad_join(const Segment& segment, const ncclComm& comm, const char* what);
void report_control_mismatch(const ncclComm& comm, const std::vector<int>& who, const std::vector<ControlCall>& calls);
void report_collective_mismatch(const ncclComm& comm, std::uint64_t position, const std::vector<Signature>& by_rank);
void report_message_mismatch(const ncclComm& comm, int from, int to, std::uint64_t number, std::uint64_t send_bytes,
                             std::uint64_t receive_bytes);

}  // namespace lockstep::standin
