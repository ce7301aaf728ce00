// The frame around the lines: groups, ranks, ends and what the contract lets us add.
#include "read/job_json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "read/job_json_words.h"
#include "read/job_line_writer.h"

namespace lockstep {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

std::string json_string(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

class JobWriter {
 public:
  JobWriter(const Job& job, const std::function<void(std::string_view)>& write)
      : job_(job), write_(write), names_(unique_group_names(job)) {}

  void write() {
    text_ = "{\"schema\": \"lockstep-job/1\"";
    if (job_.library() != Library::kUnknown) field("library", json_string(library_name(job_.library())));
    if (job_.library_version() != 0) field("library_version", json_string(job_json_library_version(job_.library_version())));
    if (job_.implicit_launch_order()) field("launch_order", "\"implicit\"");
    if (!job_.name().empty()) field("name", json_string(job_.name()));
    const auto& expected = job_.quality().ranks_expected;
    if (expected && *expected != count_ranks()) field("ranks_expected", std::to_string(*expected));
    if (!job_.quality().complete) field("complete", "false");
    write_groups();
    write_ranks();
    write_ends();
    write_missing();
    write_places();
    text_ += "\n}\n";
    write_(text_);
  }

 private:
  void field(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text_), ",\n \"{}\": {}", name, value);
  }

  /// Those that groups and programs show.
  std::size_t count_ranks() const {
    std::vector<std::int32_t> ranks;
    for (const Program& program : job_.programs()) ranks.push_back(program.rank);
    for (const Communicator& communicator : job_.communicators()) {
      if (communicator.members_known) ranks.insert(ranks.end(), communicator.members.begin(), communicator.members.end());
    }
    std::ranges::sort(ranks);
    return static_cast<std::size_t>(std::unique(ranks.begin(), ranks.end()) - ranks.begin());
  }

  /// An object with an entry per line.
  void section(std::string_view name, const std::map<std::int32_t, std::string>& entries) {
    if (entries.empty()) return;
    field(name, "{");
    const char* separator = "\n";
    for (const auto& [rank, value] : entries) {
      fmt::format_to(std::back_inserter(text_), "{}  \"{}\": {}", separator, rank, value);
      separator = ",\n";
      flush();
    }
    text_ += '}';
  }

  void flush() {
    if (text_.size() < kPieceBytes) return;
    write_(text_);
    text_.clear();
  }

  void write_groups() {
    field("groups", "{");
    std::string ids;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const Communicator& communicator = job_.communicators()[i];
      const std::string name = json_string(names_[i]);
      fmt::format_to(std::back_inserter(text_), "{}\n  {}: ", i == 0 ? "" : ",", name);
      if (communicator.members_known) {
        text_ += fmt::format("[{}]", fmt::join(communicator.members, ","));
      } else {
        text_ += "null";
      }
      if (communicator.id != names_[i]) {
        ids += fmt::format("{}\n  {}: {}", ids.empty() ? "" : ",", name, json_string(communicator.id));
      }
      flush();
    }
    text_ += '}';
    if (!ids.empty()) field("group_ids", '{' + ids + '}');
    write_libraries();
  }

  /// Of groups that are not of the job's library.
  void write_libraries() {
    std::string libraries;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const Library library = job_.communicators()[i].library;
      if (library == Library::kUnknown) continue;
      libraries += fmt::format("{}\n  {}: {}", libraries.empty() ? "" : ",", json_string(names_[i]), json_string(library_name(library)));
    }
    if (!libraries.empty()) field("libraries", '{' + libraries + '}');
  }

  void write_ranks() {
    field("ranks", "{");
    bool first = true;
    for (const Program& program : job_.programs()) {
      fmt::format_to(std::back_inserter(text_), "{}\n  \"{}\": [", first ? "" : ",", program.rank);
      first = false;
      write_program(program);
      text_ += ']';
    }
    text_ += '}';
  }

  void write_program(const Program& program) {
    std::unordered_map<std::uint32_t, std::size_t> last_of_launch;
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      if (program.operations[i].launch != 0) last_of_launch[program.operations[i].launch] = i;
    }
    first_line_ = true;
    const auto& operations = program.operations;
    std::size_t group_ends = 0;  // past the last operation of the group that is open; 0 = none
    for (std::size_t i = 0; i < operations.size();) {
      if ((operations[i].flags & kOpReplayed) != 0) {  // the launch before it says so
        ++i;
        continue;
      }
      const std::uint32_t launch = operations[i].launch;
      std::size_t next = i + 1;
      if (launch != 0 && group_ends == 0) {
        const std::size_t end = last_of_launch[launch] + 1;
        while (next < end && operations[next].launch == launch) ++next;
        if (next == end) {
          write_batch({operations.data() + i, next - i});
        } else {
          // Something stands between them that a batch cannot hold.
          line("group_start");
          group_ends = end;
          next = i;
        }
      } else {
        write_operation(operations[i]);
      }
      if (group_ends != 0 && next == group_ends) {
        line("group_end");
        group_ends = 0;
      }
      i = next;
      flush();
    }
  }

  void write_operation(const Operation& operation) {
    // Groups are told by launch numbers.
    if (operation.kind == OpKind::kGroupStart || operation.kind == OpKind::kGroupEnd) return;
    std::string text;
    append_operation(job_, names_, operation, text);
    line(text);
  }

  void write_batch(std::span<const Operation> operations) {
    std::string text = "batch[";
    for (const Operation& operation : operations) {
      if (operation.kind == OpKind::kGroupStart || operation.kind == OpKind::kGroupEnd) continue;
      if (text.size() > 6) text += "; ";
      append_operation(job_, names_, operation, text);
    }
    if (text.size() > 6) line(text + ']');
  }

  void line(std::string_view text) {
    text_ += first_line_ ? "\n    " : ",\n    ";
    first_line_ = false;
    text_ += json_string(text);
  }

  void write_ends() {
    std::map<std::int32_t, std::string> ends;
    for (const Program& program : job_.programs()) ends[program.rank] = json_string(job_json_end(program.end));
    // A Job lists the ends of ranks without a program by rank only: ask for all that a communicator names.
    for (const Communicator& communicator : job_.communicators()) {
      for (const std::int32_t rank : communicator.members) {
        const ProgramEnd end = job_.end_of_rank(rank);
        if (end.kind != EndKind::kUnknown) ends.try_emplace(rank, json_string(job_json_end(end)));
      }
    }
    section("ends", ends);
  }

  void write_missing() {
    std::map<std::int32_t, std::string> missing;
    for (const Program& program : job_.programs()) {
      if (!program.head_missing && !program.tail_missing) continue;
      missing[program.rank] = !program.tail_missing ? "\"head\"" : program.head_missing ? "\"head,tail\"" : "\"tail\"";
    }
    section("missing", missing);
  }

  void write_places() {
    std::map<std::int32_t, std::string> places;
    for (const Program& program : job_.programs()) {
      const Place& place = program.place;
      std::string text;
      const auto add = [&text](std::string_view name, const std::string& value) {
        text += fmt::format("{}\"{}\": {}", text.empty() ? "{" : ", ", name, value);
      };
      if (!place.host.empty()) add("host", json_string(place.host));
      if (place.pid != 0) add("pid", std::to_string(place.pid));
      if (place.local_rank) add("local_rank", std::to_string(*place.local_rank));
      if (!place.device.empty()) add("device", json_string(place.device));
      if (!text.empty()) places[program.rank] = text + '}';
    }
    section("places", places);
  }

  const Job& job_;
  const std::function<void(std::string_view)>& write_;
  std::vector<std::string> names_;
  std::string text_;
  bool first_line_ = true;
};

}  // namespace

void write_job_json(const Job& job, const std::function<void(std::string_view)>& write) {
  JobWriter(job, write).write();
}

std::string to_job_json(const Job& job) {
  std::string text;
  write_job_json(job, [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace lockstep
