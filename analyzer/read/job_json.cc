// The structure of Job JSON around its lines, by nlohmann's event parser: bounded memory, no exceptions.
#include "read/job_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "read/job_json_words.h"
#include "read/job_line.h"
#include "read/json_outline.h"
#include "read/tracking_iterator.h"

namespace lockstep {
namespace {

constexpr std::string_view kSchema = "lockstep-job/1";
constexpr std::size_t kDeepest = 64;
/// What "0-3" may stand for, in ranks and in operations over the whole file: a short text must not become a huge Job.
constexpr std::size_t kMostAbbreviated = std::size_t{1} << 24;

enum class Section { kNone, kGroups, kGroupIds, kLibraries, kRanks, kEnds, kMissing, kPlaces, kOther };

struct GroupEntry {
  std::string name{};
  std::vector<std::int32_t> members{};
  std::uint32_t line = 0;
};

/// What the parser's events mean. Pass 1 takes everything, and the ranks as soon as the groups are clear; pass 2 the ranks.
class JobJsonHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JobJsonHandler(const EvidenceFile& file, JobIntake& intake)
      : file_(file), intake_(intake), warnings_(intake.builder(), file.path),
        source_(intake.builder().source(file.path)), line_groups_(intake),
        lines_(intake, warnings_, line_groups_) {}

  Result<std::size_t> read();

  bool null() override { return scalar("null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(value > 0x7fffffff ? -1 : static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t, const std::string& text) override { return scalar(text); }
  bool string(std::string& value) override;
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override;
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) override;

 private:
  bool parse();
  std::uint32_t line();
  bool open();
  bool close();
  bool number(std::int64_t value);
  bool scalar(std::string_view text);
  void take_field(std::string_view value);
  void take_place(std::string_view value);
  void define_groups();
  void begin_rank();
  void end_rank(bool cut);
  bool abbreviates(std::size_t more);

  const EvidenceFile& file_;
  JobIntake& intake_;
  FileWarnings warnings_;
  SourceIndex source_;

  const char* reached_ = nullptr;   // how far the parser has read
  const char* counted_ = nullptr;   // line_ is the line of this place
  std::uint32_t line_ = 1;
  std::size_t depth_ = 0;
  std::string section_name_;
  Section section_ = Section::kNone;
  std::string entry_;               // key inside a section
  std::string field_;               // key inside an entry
  bool second_pass_ = false;
  bool ranks_deferred_ = false;
  bool ends_seen_ = false;
  bool ranks_seen_ = false;
  bool complete_ = false;           // the outermost object was closed
  std::string damage_;              // why the JSON breaks off; empty = whole
  std::optional<Error> unsupported_;

  std::vector<GroupEntry> groups_;
  std::map<std::string, std::string> group_ids_;
  std::map<std::string, Library> libraries_;          // by group
  std::map<std::string, CommIndex> defined_groups_;
  std::map<std::int32_t, ProgramEnd> ends_;
  std::map<std::int32_t, std::string> missing_;
  std::map<std::int32_t, Place> places_;
  LineGroups line_groups_;
  JobLineReader lines_;
  std::optional<std::int32_t> rank_;  // whose lines are being read
  std::size_t abbreviated_ = 0;
  std::vector<std::int32_t> same_ranks_;  // that make the same calls: "0-3" as a key
  std::vector<Program> programs_;
};

std::uint32_t JobJsonHandler::line() {
  line_ += static_cast<std::uint32_t>(std::count(counted_, reached_, '\n'));
  counted_ = reached_;
  return line_;
}

bool JobJsonHandler::parse() {
  const std::string_view text = skip_mark_and_space(file_.contents);
  reached_ = counted_ = file_.contents.data();
  line_ = 1;
  depth_ = 0;
  section_ = Section::kNone;
  return nlohmann::json::sax_parse(TrackingIterator(text.data(), &reached_),
                                   TrackingIterator(text.data() + text.size(), &reached_), this);
}

bool JobJsonHandler::parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
  const bool at_end = reached_ >= file_.contents.data() + file_.contents.size();
  if (complete_) return false;  // text after the end: read() says so
  damage_ = at_end ? "the JSON ends before it is complete" : "this is no JSON";
  if (!second_pass_) warnings_.warn(line(), damage_ + ": what stands before it is used");
  return false;
}

bool JobJsonHandler::key(std::string& name) {
  if (depth_ == 1) {
    section_name_ = name;
    entry_.clear();
    section_ = name == "groups"      ? Section::kGroups
               : name == "group_ids" ? Section::kGroupIds
               : name == "libraries" ? Section::kLibraries
               : name == "ranks"     ? Section::kRanks
               : name == "ends"      ? Section::kEnds
               : name == "missing"   ? Section::kMissing
               : name == "places"    ? Section::kPlaces
                                     : Section::kOther;
  } else if (depth_ == 2) {
    entry_ = std::move(name);
  } else {
    field_ = std::move(name);
  }
  return true;
}

bool JobJsonHandler::open() {
  if (++depth_ > kDeepest) {
    damage_ = fmt::format("nested deeper than {}", kDeepest);
    if (!second_pass_) warnings_.warn(line(), damage_ + ": what stands before it is used");
    return false;
  }
  if (depth_ == 2 && section_ == Section::kRanks && !second_pass_) {
    ranks_seen_ = true;
    ranks_deferred_ = groups_.empty();
    if (!ranks_deferred_) define_groups();
  }
  if (depth_ == 2 && section_ == Section::kEnds) ends_seen_ = true;
  if (depth_ == 3 && section_ == Section::kGroups && !second_pass_) {
    groups_.push_back({.name = entry_, .line = line()});
  }
  if (depth_ == 3 && section_ == Section::kRanks) begin_rank();
  if (depth_ == 4 && section_ == Section::kRanks && rank_) lines_.read_foreign(line());
  return true;
}

bool JobJsonHandler::close() {
  if (depth_ == 3 && section_ == Section::kRanks) end_rank(false);
  if (--depth_ == 1) section_ = Section::kNone;
  if (depth_ == 0) {
    complete_ = true;
    line();  // counted_ is now the end of the JSON
  }
  return true;
}

bool JobJsonHandler::string(std::string& value) {
  if (depth_ == 3 && section_ == Section::kRanks) {
    if (rank_) lines_.read(value, line());
    return true;
  }
  return scalar(value);
}

bool JobJsonHandler::number(std::int64_t value) {
  if (depth_ == 3 && section_ == Section::kGroups) {
    if (second_pass_) return true;
    if (value < 0 || value > 0x7fffffff) {
      warnings_.warn(line(), fmt::format("groups.{}: a member is a rank from 0 to 2^31-1: left out", entry_));
    } else {
      groups_.back().members.push_back(static_cast<std::int32_t>(value));
    }
    return true;
  }
  // A text may list the members of a group; a number does not.
  if (depth_ == 2 && section_ == Section::kGroups) return scalar("a number");
  return scalar(std::to_string(value));
}

/// Every value that is not a line of a rank or a member of a group.
bool JobJsonHandler::scalar(std::string_view value) {
  if (depth_ == 3 && section_ == Section::kRanks) {
    if (rank_) lines_.read_foreign(line());
    return true;
  }
  if (second_pass_) return true;
  if (depth_ == 1) {
    take_field(value);
    return !unsupported_;
  }
  const auto rank = rank_from_key(entry_);
  if (depth_ == 2 && section_ == Section::kGroups) {
    std::vector<std::int32_t> members = ranks_from_text(value);
    if (!abbreviates(members.size())) members.clear();
    if (value != "null" && members.empty()) {
      warnings_.warn(line(), fmt::format("groups.{}: a group is a list of ranks", entry_));
    }
    groups_.push_back({.name = entry_, .members = std::move(members), .line = line()});
  } else if (depth_ == 2 && section_ == Section::kGroupIds) {
    group_ids_[entry_] = value;
  } else if (depth_ == 2 && section_ == Section::kLibraries) {
    const Library library = library_from_name(value);
    if (library == Library::kUnknown) {
      warnings_.warn(line(), fmt::format("libraries.{}: {} is not nccl, mpi or torch: ignored", entry_, excerpt(value)));
    } else {
      libraries_[entry_] = library;
    }
  } else if (depth_ == 3 && section_ == Section::kGroups) {
    warnings_.warn(line(), fmt::format("groups.{}: {} is no rank: left out", entry_, excerpt(value)));
  } else if (depth_ == 2 && section_ == Section::kEnds) {
    const auto end = parse_end(value);
    if (rank && end) {
      ends_[*rank] = *end;
    } else {
      warnings_.warn(line(), fmt::format("ends.{}: {} is no end of a rank: ignored", entry_, excerpt(value)));
    }
  } else if (depth_ == 2 && section_ == Section::kMissing && rank) {
    missing_[*rank] = value;
  } else if (depth_ == 3 && section_ == Section::kPlaces && rank) {
    take_place(value);
  } else if (depth_ == 2 && section_ == Section::kRanks) {
    warnings_.warn(line(), fmt::format("ranks.{}: the lines of a rank are a list: ignored", entry_));
  }
  return true;
}

void JobJsonHandler::take_field(std::string_view value) {
  if (section_name_ == "schema") {
    if (value != kSchema && value.starts_with("lockstep-job/")) {
      unsupported_ = Error{ErrorCode::kUnsupported, fmt::format("{}:{}: schema {}; this program reads {}", file_.path,
                                                                line(), excerpt(value), kSchema)};
    } else if (value != kSchema) {
      warnings_.warn(line(), fmt::format("schema {} is not {}", excerpt(value), kSchema));
    }
  } else if (section_name_ == "library") {
    const Library library = library_from_name(value);
    if (library == Library::kUnknown) {
      warnings_.warn(line(), fmt::format("library {} is not nccl, mpi or torch: ignored", excerpt(value)));
    }
    intake_.set_library(library, file_.path);
  } else if (section_name_ == "library_version") {
    const auto version = parse_library_version(value);
    if (version) intake_.builder().set_library_version(*version);
    if (!version) warnings_.warn(line(), fmt::format("library_version {} is no version like 2.28.9: ignored", excerpt(value)));
  } else if (section_name_ == "launch_order") {
    if (value == "implicit") intake_.builder().set_implicit_launch_order(true);
    if (value != "implicit" && value != "explicit") {
      warnings_.warn(line(), fmt::format("launch_order {} is not implicit or explicit: ignored", excerpt(value)));
    }
  } else if (section_name_ == "name") {
    intake_.builder().set_name(value);
  } else if (section_name_ == "complete") {
    if (value == "false") intake_.builder().set_incomplete();
  } else if (section_name_ == "ranks_expected") {
    if (const auto expected = rank_from_key(value)) {
      intake_.set_ranks_expected(static_cast<std::size_t>(*expected));
    }
  } else if (section_ != Section::kOther) {
    warnings_.warn(line(), fmt::format("{} is an object: ignored", excerpt(section_name_)));
  }
}

void JobJsonHandler::take_place(std::string_view value) {
  Place& place = places_[*rank_from_key(entry_)];
  if (field_ == "host") place.host = value;
  if (field_ == "device") place.device = value;
  if (field_ == "pid") std::from_chars(value.data(), value.data() + value.size(), place.pid);
  if (field_ == "local_rank") place.local_rank = rank_from_key(value);
}

void JobJsonHandler::define_groups() {
  for (GroupEntry& group : groups_) {
    if (drop_repeated(group.members)) {
      warnings_.warn(group.line, fmt::format("groups.{}: a rank is listed twice: used once", group.name));
    }
    const auto id = group_ids_.find(group.name);
    const CommIndex comm =
        intake_.communicator(id == group_ids_.end() ? group.name : id->second, group.name, group.members,
                             fmt::format("{}:{}", file_.path, group.line));
    defined_groups_[group.name] = comm;
    line_groups_.add(group.name, comm, intake_.builder().communicator(comm).members);
    intake_.add_to_world(group.members);
  }
  groups_.clear();
}

void JobJsonHandler::begin_rank() {
  const std::vector<std::int32_t> ranks = ranks_from_text(entry_);
  static_cast<void>(abbreviates(ranks.size()));
  rank_.reset();
  if (!ranks.empty()) rank_ = ranks.front();
  same_ranks_.assign(ranks.begin() + (ranks.empty() ? 0 : 1), ranks.end());
  if (!rank_) {
    if (!second_pass_) warnings_.warn(line(), fmt::format("ranks.{}: no rank: ignored", excerpt(entry_)));
    return;
  }
  intake_.add_to_world(ranks);
  if (ranks_deferred_ && !second_pass_) {
    rank_.reset();
  } else {
    lines_.begin(*rank_, source_);
  }
}

/// False once ranges stand for more than is followed.
bool JobJsonHandler::abbreviates(std::size_t more) {
  if (more <= kMostAbbreviated - abbreviated_) {
    abbreviated_ += more;
    return true;
  }
  abbreviated_ = kMostAbbreviated;
  warnings_.warn(line(), "ranges of ranks stand for more than is followed: the rest is left out");
  intake_.builder().set_incomplete();
  return false;
}

void JobJsonHandler::end_rank(bool cut) {
  if (!rank_) return;
  rank_.reset();
  programs_.push_back(lines_.finish());
  if (cut) programs_.back().tail_missing = true;
  for (const std::int32_t rank : same_ranks_) {
    if (!abbreviates(programs_.back().operations.size() + 1)) break;
    Program copy = programs_[programs_.size() - 1];
    copy.rank = rank;
    programs_.push_back(std::move(copy));
  }
}

Result<std::size_t> JobJsonHandler::read() {
  parse();
  if (unsupported_) return *unsupported_;
  if (complete_) {
    const std::string_view rest(counted_, static_cast<std::size_t>(file_.contents.data() + file_.contents.size() - counted_));
    const std::size_t text = rest.find_first_not_of(" \t\r\n");
    if (text != std::string_view::npos) {
      reached_ = rest.data() + text;
      warnings_.warn(line(), "text after the end of the JSON: ignored");
    }
  }
  if (ranks_deferred_) {
    define_groups();
    second_pass_ = true;
    complete_ = false;
    parse();
  }
  end_rank(true);
  if (!damage_.empty()) intake_.builder().set_incomplete();
  if (programs_.empty() && !damage_.empty()) {
    return Error{ErrorCode::kMalformed, fmt::format("{}:{}: {}", file_.path, line(), damage_)};
  }
  if (!ranks_seen_) {
    return Error{ErrorCode::kMalformed, fmt::format("{}: has no \"ranks\" object: nothing to compare", file_.path)};
  }
  for (Program& program : programs_) {
    const std::int32_t rank = program.rank;
    if (!damage_.empty() && !ends_seen_) program.end = {};
    if (const auto end = ends_.find(rank); end != ends_.end()) program.end = end->second;
    if (const auto place = places_.find(rank); place != places_.end()) program.place = place->second;
    if (const auto missing = missing_.find(rank); missing != missing_.end()) {
      program.head_missing |= missing->second.find("head") != std::string::npos;
      program.tail_missing |= missing->second.find("tail") != std::string::npos;
    }
    ends_.erase(rank);
    intake_.add_program(std::move(program));
  }
  for (const auto& [name, library] : libraries_) {
    const auto group = defined_groups_.find(name);
    if (group != defined_groups_.end()) intake_.builder().set_library(group->second, library);
    else warnings_.warn(0, fmt::format("libraries.{}: there is no such group: ignored", name));
  }
  for (const auto& [rank, end] : ends_) intake_.builder().set_end(rank, end);
  return programs_.size();
}

}  // namespace

bool looks_like_job_json(std::string_view head) {
  return std::ranges::any_of(outline_keys(head), [](const OutlineKey& key) {
    return (key.name == "schema" && key.value == '"') ||
           ((key.name == "ranks" || key.name == "groups") && (key.value == '{' || key.value == '\0'));
  });
}

Result<std::size_t> read_job_json(const EvidenceFile& file, JobIntake& intake) {
  return JobJsonHandler(file, intake).read();
}

}  // namespace lockstep
