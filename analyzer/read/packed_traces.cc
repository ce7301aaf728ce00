// See the header.
#include "read/packed_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>

#include "base/mapped_file.h"
#include "read/pack_file.h"
#include "read/trace_set.h"

namespace lockstep {
namespace {

// Names come from the file; longer ones than the recorder makes are cut.
constexpr std::size_t kMaxShownName = 512;

struct Member {
  std::size_t pack = 0;  ///< index of its file
  std::string path{};    ///< "hang.lspack:run/host.1.2.lst"
  std::string bytes{};   ///< with the padding that readers rely on
};

/// A name from a pack as messages and reports can show it: on one line, and cut.
std::string shown_name(std::string_view name) {
  std::string shown(name.substr(0, kMaxShownName));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::ranges::replace_if(shown, is_control, '?');
  return shown;
}

/// The traces in one pack, added to `members`.
std::optional<Error> collect(const EvidenceFile& file, std::size_t index, JobIntake& intake,
                             std::deque<Member>& members, std::uint64_t& total) {
  const std::size_t before = members.size();
  bool too_large = false;
  const Result<Unpacked> unpacked = unpack(file.contents, file.path, [&](const PackMember& member) {
    if (member.kind != pack::MemberKind::kTrace) return true;
    total += member.content.size();
    too_large = total > kMaxUnpackedBytes;
    if (too_large) return false;
    Member kept{index, fmt::format("{}:{}", file.path, shown_name(member.name)),
                std::string(member.content)};
    kept.bytes.append(MappedFile::kPaddingBytes, '\0');
    members.push_back(std::move(kept));
    return true;
  });
  if (!unpacked) return unpacked.error();
  if (too_large) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: unpacks to more than {} GiB; pack fewer calls (--tail)", file.path,
                             kMaxUnpackedBytes >> 30)};
  }
  if (members.size() == before)
    return unpacked->damage
               ? *unpacked->damage
               : Error{ErrorCode::kUnreadable, fmt::format("{}: a pack without traces", file.path)};
  if (unpacked->damage) {
    intake.builder().warn(unpacked->damage->message);
    intake.builder().set_incomplete();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<Error>> read_packs(std::span<const EvidenceFile> files, JobIntake& intake) {
  std::vector<std::optional<Error>> errors(files.size());
  std::deque<Member> members;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    errors[i] = collect(files[i], i, intake, members, total);
    if (errors[i]) std::erase_if(members, [i](const Member& member) { return member.pack == i; });
  }
  std::vector<EvidenceFile> traces;
  for (const Member& member : members) {
    const std::string_view bytes = member.bytes;
    traces.push_back({.path = member.path,
                      .contents = bytes.substr(0, bytes.size() - MappedFile::kPaddingBytes),
                      .is_copy = true});
  }
  if (traces.empty()) return errors;
  const auto trace_errors = read_traces(traces, intake);
  std::vector<std::size_t> used(files.size());
  for (std::size_t i = 0; i < members.size(); ++i) used[members[i].pack] += trace_errors[i] ? 0U : 1U;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!trace_errors[i]) continue;
    if (used[members[i].pack] == 0) {
      errors[members[i].pack] = trace_errors[i];
      continue;
    }
    intake.builder().warn(trace_errors[i]->message + ": not used");
    intake.builder().set_incomplete();
  }
  return errors;
}

}  // namespace lockstep
