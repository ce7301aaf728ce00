// Opening, recognising and joining the files of a job; see the header.
#include "read/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "read/foreign_file.h"
#include "read/formats.h"
#include "read/open_input.h"
#include "read/trace_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct InputPath {
  std::string path{};
  bool is_named = true;  ///< by the user; false: found in a directory
  bool is_trace = false; ///< found as part of a run of traces
  friend auto operator<=>(const InputPath&, const InputPath&) = default;
};

/// The files of a directory and of its newest run of traces, or why there are none.
std::optional<Error> list_directory(const std::string& path, std::vector<InputPath>& inputs, JobBuilder& builder) {
  std::error_code error;
  const std::size_t before = inputs.size();
  const std::optional<TraceDirectory> traces = find_newest_run(path);
  if (traces) {
    for (const std::string& file : traces->files) inputs.push_back({file, false, true});
    for (const std::string& other : traces->others) builder.add_other_run(other);
    for (const std::string& warning : traces->warnings) builder.warn(warning);
    if (!traces->warnings.empty()) builder.set_incomplete();
  }
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const std::string name = at->path().string();
    const bool listed = traces && (name.ends_with(".lst") || name.ends_with(".ptr"));
    if (!listed && at->is_regular_file(ignored)) inputs.push_back({name, false});
  }
  if (error) return Error{ErrorCode::kUnreadable, fmt::format("{}: {}", path, error.message())};
  if (inputs.size() == before) return Error{ErrorCode::kUnreadable, fmt::format("{}: no files in it", path)};
  return std::nullopt;
}

/// Opens and reads the files of a job, and keeps those that are read together until all are there.
class FileReader {
 public:
  FileReader(JobIntake& intake, const ReadProgress& progress) : intake_(intake), progress_(progress) {}

  /// Parses what can be parsed by itself, in so many threads; read() then takes it from there.
  void prepare(std::span<const InputPath> inputs, unsigned threads) {
    if (threads < 2 || inputs.size() < 2) return;
    prepared_.resize(inputs.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < inputs.size(); i = next++) {
        if (inputs[i].is_trace || inputs[i].path == "-" || !fs::is_regular_file(inputs[i].path)) continue;  // a pipe gives its bytes once
        Result<OpenedInput> opened = open_input(inputs[i].path, progress_);
        if (!opened || opened->format == nullptr || opened->format->parse == nullptr) continue;
        prepared_[i].format = opened->format;
        if (opened->parsed) {
          prepared_[i].parsed.emplace(std::move(opened->parsed));
          continue;
        }
        prepared_[i].parsed.emplace(opened->format->parse({.path = inputs[i].path, .contents = opened->file->contents()}));
        prepared_[i].shortened = opened->file->was_shortened();
      }
    };
    std::vector<std::jthread> workers;
    for (unsigned n = 0; n < std::min<std::size_t>(threads, inputs.size()); ++n) workers.emplace_back(work);
  }

  void read(const InputPath& input, std::size_t number) {
    if (number < prepared_.size() && prepared_[number].parsed) {
      Prepared& prepared = prepared_[number];
      if (prepared.shortened && !shortened_) shortened_ = input.path;
      return take(input, prepared.format, *std::move(prepared.parsed));
    }
    Result<OpenedInput> opened = input.is_trace ? open_trace(input.path) : open_input(input.path, progress_);
    if (!opened) return fail(input, opened.error());
    const EvidenceFormat* format = opened->format;
    if (opened->parsed) return take(input, format, std::move(opened->parsed));
    MappedFile& mapped = *opened->file;
    const std::string_view contents = mapped.contents();
    if (format == nullptr) {
      return fail(input, {ErrorCode::kUnreadable,
                          fmt::format("{}: {}", input.path, what_it_looks_like(contents.substr(0, kHeadBytes)))});
    }
    if (format->read_together != nullptr) {
      kept_[format].push_back({input, std::move(mapped)});
      return;
    }
    if (format->parse != nullptr) {
      auto parsed = format->parse({.path = input.path, .contents = contents});
      note_shortened(input, mapped);
      return take(input, format, std::move(parsed));
    }
    const Result<std::size_t> programs = format->read({.path = input.path, .contents = contents}, intake_);
    note_shortened(input, mapped);
    if (!programs) return fail(input, programs.error());
    ++used_;
  }

  void read_kept() {
    for (const auto& [format, files] : kept_) {
      std::vector<EvidenceFile> views;
      for (const KeptFile& file : files) views.push_back({.path = file.input.path, .contents = file.file.contents()});
      const auto failures = format->read_together(views, intake_);
      for (std::size_t i = 0; i < files.size(); ++i) {
        if (failures[i]) fail(files[i].input, *failures[i]);
        else ++used_;
      }
      for (const KeptFile& file : files) note_shortened(file.input, file.file);
    }
    kept_.clear();
    for (const EvidenceFormat& format : evidence_formats()) {  // in the order of the table: logs last, when all calls are known
      const auto join = format.join;
      const auto at = parsed_.find(join);
      if (join == nullptr || at == parsed_.end()) continue;
      auto files = std::move(at->second);
      parsed_.erase(at);
      std::vector<std::unique_ptr<ParsedEvidence>> parsed;
      for (ParsedFile& file : files) parsed.push_back(std::move(file.parsed));
      const auto failures = join(std::move(parsed), intake_);
      for (std::size_t i = 0; i < files.size(); ++i) {
        if (failures[i]) fail(files[i].input, *failures[i]);
        else ++used_;
      }
    }
    parsed_.clear();
  }

  void fail(const InputPath& input, Error error) {
    // A directory may hold anything besides evidence; a file that was named was meant to be read.
    if (input.is_named) intake_.builder().set_incomplete();
    intake_.builder().warn(error.message + ": not used");
    errors.push_back(std::move(error));
  }

  std::size_t used() const { return used_; }
  /// A file that became shorter while it was read: nothing that was read is worth anything.
  const std::optional<std::string>& shortened() const { return shortened_; }
  std::vector<Error> errors{};

 private:
  /// A recorder reserves its file once: it is mapped whatever its size. Thousands of them would not fit into memory.
  static Result<OpenedInput> open_trace(const std::string& path) {
    Result<MappedFile> file = MappedFile::open(path, 0);
    if (!file) return file.error();
    OpenedInput opened{.format = find_format(file->contents())};
    opened.file.emplace(*std::move(file));
    return opened;
  }

  void note_shortened(const InputPath& input, const MappedFile& file) {
    if (!shortened_ && file.was_shortened()) shortened_ = input.path;
  }

  struct KeptFile {
    InputPath input;
    MappedFile file;
  };
  void take(const InputPath& input, const EvidenceFormat* format, Result<std::unique_ptr<ParsedEvidence>> parsed) {
    if (!parsed) return fail(input, parsed.error());
    parsed_[format->join].push_back({input, *std::move(parsed)});
  }

  struct Prepared {
    const EvidenceFormat* format = nullptr;
    std::optional<Result<std::unique_ptr<ParsedEvidence>>> parsed{};
    bool shortened = false;
  };
  std::vector<Prepared> prepared_;

  struct ParsedFile {
    InputPath input;
    std::unique_ptr<ParsedEvidence> parsed;
  };
  JobIntake& intake_;
  const ReadProgress& progress_;
  std::map<const EvidenceFormat*, std::vector<KeptFile>> kept_;
  std::map<decltype(EvidenceFormat::join), std::vector<ParsedFile>> parsed_;
  std::size_t used_ = 0;
  std::optional<std::string> shortened_;
};

/// All of them in one line.
Error join(const std::vector<Error>& errors) {
  Error all = errors.front();
  for (std::size_t i = 1; i < errors.size(); ++i) {
    all.message += "; " + errors[i].message;
    if (errors[i].code != all.code) all.code = ErrorCode::kUnreadable;
  }
  return all;
}

/// Reads all once. `shortened`: a file that became shorter meanwhile.
Result<LoadedEvidence> load_once(std::span<const std::string> paths, const LoadOptions& options,
                                 std::optional<std::string>& shortened) {
  JobIntake intake;
  intake.set_native_lookup(options.native_lookup);
  FileReader reader(intake, options.progress);
  std::vector<InputPath> inputs;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path != "-" && fs::is_directory(path, ignored)) {
      if (auto error = list_directory(path, inputs, intake.builder())) reader.errors.push_back(std::move(*error));
    } else {
      inputs.push_back({path, true});
    }
  }
  std::ranges::sort(inputs);
  reader.prepare(inputs, options.jobs);
  for (std::size_t i = 0; i < inputs.size(); ++i) reader.read(inputs[i], i);
  reader.read_kept();
  shortened = reader.shortened();
  if (reader.used() == 0) return join(reader.errors);
  LoadedEvidence evidence;
  evidence.reported = std::move(intake.reported());
  evidence.job = std::move(intake).finish();
  return evidence;
}

}  // namespace

Result<Job> load_job(std::span<const std::string> paths, const LoadOptions& options) {
  Result<LoadedEvidence> evidence = load_evidence(paths, options);
  if (!evidence) return evidence.error();
  return std::move(evidence->job);
}

Result<LoadedEvidence> load_evidence(std::span<const std::string> paths, const LoadOptions& options) {
  if (paths.empty()) return Error{ErrorCode::kUsage, "no input given"};
  std::optional<std::string> shortened;
  // A file that was cut once is read as what it is now; standard input cannot be read again, and is never mapped.
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    Result<LoadedEvidence> evidence = load_once(paths, options, shortened);
    if (!shortened) return evidence;
    if (std::ranges::find(paths, "-") != paths.end()) break;
  }
  return Error{ErrorCode::kUnreadable, fmt::format("{}: is being shortened while it is read", *shortened)};
}

}  // namespace lockstep
