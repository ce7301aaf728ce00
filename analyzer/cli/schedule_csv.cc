// Schedules of torch.distributed.pipelining from CSV.
#include "cli/schedule_csv.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <numeric>

#include "model/job_builder.h"
#include "plan/schedule/lower_to_job.h"
#include "plan/schedule/torch_first_step.h"

namespace lockstep {
namespace {

constexpr std::string_view kEmptyCells = ", \t\r\n\"";

}  // namespace

bool looks_like_schedule_csv(std::string_view text) {
  const std::size_t start = text.find_first_not_of(kEmptyCells);
  if (start == std::string_view::npos) return false;
  const std::string_view rest = text.substr(start, 256);
  const std::string_view cell = rest.substr(0, rest.find_first_of(",\r\n"));
  static const RE2 action(
      R"(\(?\s*[0-9]+\s*(F|B|I|W|BW|UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B)[0-9]*[^,]*)");
  return RE2::FullMatch(re2::StringPiece(cell.data(), cell.size()), action);
}

plan::TorchLetters schedule_csv_letters(std::string_view text) {
  const re2::StringPiece piece(text.data(), text.size());
  static const RE2 full(R"([0-9]BW[0-9])");
  static const RE2 input(R"([0-9]I[0-9])");
  static const RE2 weight(R"([0-9]W[0-9])");
  if (RE2::PartialMatch(piece, full)) return plan::TorchLetters::kOld;
  if (RE2::PartialMatch(piece, input)) return plan::TorchLetters::kNew;
  return RE2::PartialMatch(piece, weight) ? plan::TorchLetters::kOld : plan::TorchLetters::kNew;
}

Job schedule_csv_job(const plan::TorchImport& import, bool first_step) {
  plan::Timeline timeline = *import.timeline;
  if (first_step) plan::prepend_torch_handshake(timeline, import.stage_ranks);
  JobBuilder builder;
  builder.set_library(Library::kTorch);
  std::vector<std::int32_t> ranks(timeline.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const CommIndex pipeline = builder.communicator("pp", "pp", ranks);
  plan::ScheduleLowering lowering(builder, timeline,
                                  {.source = plan::ScheduleSource::kTorch, .computation = true});
  for (const std::int32_t rank : ranks) {
    OperationTable operations;
    lowering.append(rank, {.ranks = ranks, .pipeline = pipeline}, operations);
    Program& program = builder.program(rank);
    program.operations = std::move(operations);
    program.end = {.kind = EndKind::kExited, .status = 0};
  }
  return std::move(builder).build();
}

std::string schedule_csv_problem(const std::string& path, const plan::TorchProblem& problem) {
  const std::string cell = problem.cell ? fmt::format(" cell {}:", *problem.cell + 1) : "";
  return fmt::format("{}:{}:{} {}{}", path, problem.rank + 1, cell, problem.message,
                     problem.checked_upstream ? "" : " (torch does not check this)");
}

}  // namespace lockstep
