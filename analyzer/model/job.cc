// The built Job: lookups only; JobBuilder (job_builder.cc) fills the data.
#include "model/job.h"

#include <algorithm>

#include "model/gloo.h"
#include "model/job_data.h"

namespace lockstep {

std::string_view library_name(Library library) {
  if (library == kGlooLibrary) return "gloo";
  switch (library) {
    case Library::kUnknown:
      return "";
    case Library::kNccl:
      return "nccl";
    case Library::kMpi:
      return "mpi";
    case Library::kTorch:
      return "torch";
  }
  return "";
}

Job::Job() : data_(std::make_unique<Data>()) {}
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;
Job::~Job() = default;

std::span<const Program> Job::programs() const { return data_->programs; }
std::span<const Communicator> Job::communicators() const { return data_->communicators; }

ProgramIndex Job::program_of_rank(std::int32_t rank) const {
  const auto& programs = data_->programs;
  // Ranks are nearly always 0..n-1: look there before searching.
  if (rank >= 0 && static_cast<std::size_t>(rank) < programs.size() &&
      programs[static_cast<std::size_t>(rank)].rank == rank) {
    return ProgramIndex{static_cast<std::uint32_t>(rank)};
  }
  const auto at = std::ranges::lower_bound(programs, rank, {}, &Program::rank);
  if (at == programs.end() || at->rank != rank) return kNoProgram;
  return ProgramIndex{static_cast<std::uint32_t>(at - programs.begin())};
}

ProgramEnd Job::end_of_rank(std::int32_t rank) const {
  const ProgramIndex index = program_of_rank(rank);
  if (index != kNoProgram) return program(index).end;
  const auto at = data_->ends_without_program.find(rank);
  return at == data_->ends_without_program.end() ? ProgramEnd{} : at->second;
}

std::string_view Job::text(StringIndex index) const { return data_->strings[to_size(index)]; }
const CallSite& Job::site(SiteIndex index) const { return data_->sites[to_size(index)]; }
std::size_t Job::site_count() const { return data_->sites.size(); }

const OperationExtra& Job::extra(const Operation& operation) const { return data_->extras[operation.extra]; }

std::string_view Job::datatype(DatatypeIndex index) const { return data_->datatypes[to_size(index)]; }
std::string_view Job::redop(RedopIndex index) const { return data_->redops[to_size(index)]; }

std::string Job::count_text(Count count) const {
  if (count.is_none()) return "";
  if (count.is_symbol()) return std::string(text(count.text()));
  return std::to_string(count.number());
}

const std::string& Job::source(SourceIndex index) const { return data_->sources[to_size(index)]; }
Library Job::library() const { return data_->library; }
bool Job::mixes_libraries() const { return data_->mixes_libraries; }
Library Job::library_of(CommIndex comm) const {
  if (!data_->mixes_libraries || comm == kNoComm) return data_->library;
  const Library own = data_->communicators[to_size(comm)].library;
  return own == Library::kUnknown ? data_->library : own;
}
int Job::library_version() const { return data_->library_version; }
bool Job::implicit_launch_order() const { return data_->implicit_launch_order; }
const RunInfo& Job::run() const { return data_->run; }
const InputQuality& Job::quality() const { return data_->quality; }

std::size_t Job::operation_count() const {
  std::size_t count = 0;
  for (const Program& program : data_->programs) count += program.operations.size();
  return count;
}

std::uint64_t Job::earlier_call_count() const {
  std::uint64_t count = 0;
  for (const Program& program : data_->programs) {
    for (const EarlierCalls& earlier : program.earlier) count += earlier.calls;
  }
  return count;
}

}  // namespace lockstep
