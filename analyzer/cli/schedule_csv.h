// A schedule of torch.distributed.pipelining as a file: told from other files, and made into Jobs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "plan/schedule/torch_import.h"

namespace lockstep {

/// The first cell with anything in it is an action, such as "0F0", "1UNSHARD" or "(0F7;7B3)OVERLAP_F_B".
bool looks_like_schedule_csv(std::string_view text);

/// Read off the letters: "BW" is of the old ones, "I" of the new ones, and W without either follows a B that was the
/// input's gradient alone, as in the old ones. New where the file is the same in both.
plan::TorchLetters schedule_csv_letters(std::string_view text);

/// One step of the schedule, its first one if `first_step`: with the messages that only that one exchanges.
/// `import` must have a timeline.
Job schedule_csv_job(const plan::TorchImport& import, bool first_step);

/// "schedule.csv:2: cell 3: 1B0: stands twice, first in row 1, cell 4 (torch does not check this)"
std::string schedule_csv_problem(const std::string& path, const plan::TorchProblem& problem);

}  // namespace lockstep
