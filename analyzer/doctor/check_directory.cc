// Where the traces would go: the directory, its file system, and the room there, by the recorder's own rules.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/ring_size.h"
#include "doctor/checks.h"
#include "doctor/environment.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPath = 1024;  // of libshim/config.h, for directory and file together

struct NetworkFileSystem {
  std::uint32_t type;  ///< f_type of statfs(2)
  std::string_view name;
};

// The list of libshim/run_directory.cc, with names.
constexpr NetworkFileSystem kNetworkFileSystems[] = {
    {0x6969, "NFS"},          {0xFF534D42, "CIFS"},  {0xFE534D42, "SMB2"},   {0x517B, "SMB"},
    {0x0BD00BD0, "Lustre"},   {0x47504653, "GPFS"},  {0x19830326, "BeeGFS"}, {0x00C36400, "Ceph"},
    {0x65735546, "FUSE"},     {0x01021997, "9P"},    {0x6B414653, "AFS"},    {0x5346414F, "OpenAFS"},
    {0x20030528, "OrangeFS"}, {0x7461636F, "OCFS2"}, {0x01161970, "GFS2"},   {0xAAD7AAEA, "PanFS"},
};

std::string_view network_file_system(const fs::path& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) return "";
  const auto type = static_cast<std::uint32_t>(info.f_type);
  const auto* found = std::ranges::find(kNetworkFileSystems, type, &NetworkFileSystem::type);
  return found == std::end(kNetworkFileSystems) ? std::string_view() : found->name;
}

/// `path` itself or the nearest folder above that exists.
fs::path existing_part(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

/// Why no file can be made there; empty: one can.
std::string why_not_writable(const fs::path& existing) {
  std::error_code error;
  if (!fs::is_directory(existing, error)) return fmt::format("{} is no directory", existing.string());
  return access(existing.c_str(), W_OK | X_OK) == 0
             ? ""
             : fmt::format("{}: {}", existing.string(), std::strerror(errno));
}

std::string size_text(std::uint64_t bytes) {
  if (bytes >= std::uint64_t{10} << 30) return fmt::format("{} GiB", bytes >> 30);
  return bytes >= std::uint64_t{10} << 20 ? fmt::format("{} MiB", bytes >> 20)
                                          : fmt::format("{} KiB", bytes >> 10);
}

std::uint64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~std::uint64_t{0};
  return limit.rlim_cur;
}

/// Where the recorder puts the rings whose directory is on a network file system; empty: it finds no place.
fs::path local_place() {
  const bool given = !environment("LOCKSTEP_LOCAL_DIR").empty();
  std::vector<std::string_view> candidates{environment("LOCKSTEP_LOCAL_DIR")};
  if (!given) candidates = {environment("SLURM_TMPDIR"), environment("TMPDIR")};
  std::erase(candidates, "");
  candidates.resize(std::min<std::size_t>(candidates.size(), 1));
  candidates.insert(candidates.end(), {"/tmp", "/dev/shm"});
  for (const std::string_view candidate : candidates) {
    const fs::path path(candidate);
    if (!path.is_absolute() || !why_not_writable(existing_part(path)).empty()) continue;
    if (given || network_file_system(existing_part(path)).empty()) return path;
  }
  return {};
}

void check_room(const fs::path& place, std::vector<Check>& checks) {
  const auto ring = parse_ring_size(environment("LOCKSTEP_RING"));
  const std::uint64_t wanted = trace_file_bytes(ring.value_or(kDefaultRingBytes));
  const std::uint64_t least = trace_file_bytes(kSmallestRingBytes);
  struct statfs space {};
  std::uint64_t free = ~std::uint64_t{0};
  if (statfs(place.c_str(), &space) == 0)
    free = static_cast<std::uint64_t>(space.f_bavail) * static_cast<std::uint64_t>(space.f_bsize);
  const auto judge = [&](const char* subject, std::uint64_t allowed, const std::string& what,
                         const std::string& fix) {
    if (allowed >= wanted) return;
    if (allowed < least)
      checks.push_back({CheckState::kProblem, subject,
                        fmt::format("{}: no room for a trace file ({} at least)", what, size_text(least)),
                        fix});
    else
      checks.push_back(
          {CheckState::kNote, subject,
           fmt::format("{}: rings will be smaller than {} and keep fewer calls", what, size_text(wanted)),
           fix});
  };
  judge("space", free / 20,
        fmt::format("{} free in {}, of which one process takes 5 % at most", size_text(free), place.string()),
        "free some, or set LOCKSTEP_DIR");
  judge("limits", limit_of(RLIMIT_FSIZE), "RLIMIT_FSIZE (ulimit -f) limits the size of files",
        "ulimit -f unlimited");
  if (limit_of(RLIMIT_AS) < wanted)
    checks.push_back({CheckState::kProblem, "limits",
                      "RLIMIT_AS (ulimit -v) leaves no room to map a trace file",
                      "ulimit -v unlimited, or a smaller LOCKSTEP_RING"});
  if (limit_of(RLIMIT_NOFILE) < 8)
    checks.push_back({CheckState::kProblem, "limits",
                      "RLIMIT_NOFILE (ulimit -n) leaves no file descriptor to make the trace file with",
                      "ulimit -n 1024"});
  if (free / 20 >= wanted && limit_of(RLIMIT_FSIZE) >= wanted)
    checks.push_back({CheckState::kOk, "space",
                      fmt::format("{} a process, of {} free", size_text(wanted), size_text(free)), ""});
}

}  // namespace

void check_directory(std::vector<Check>& checks) {
  const std::string_view given = environment("LOCKSTEP_DIR");
  std::error_code error;
  const fs::path directory = fs::absolute(given.empty() ? "lockstep-trace" : given, error);
  if (error) {
    checks.push_back({CheckState::kProblem, "directory", "the working directory is gone",
                      "change to another, or set LOCKSTEP_DIR"});
    return;
  }
  const fs::path existing = existing_part(directory);
  if (const std::string why = why_not_writable(existing); !why.empty()) {
    checks.push_back({CheckState::kProblem, "directory",
                      fmt::format("no traces can be written to {}: {}", directory.string(), why),
                      "set LOCKSTEP_DIR to a directory that can be written, or lockstep run --dir DIR"});
    return;
  }
  if (directory.native().size() + 512 > kMaxPath) {
    checks.push_back({CheckState::kProblem, "directory", "its path is too long for the recorder",
                      "set LOCKSTEP_DIR to a shorter one"});
    return;
  }
  const std::string_view network = network_file_system(existing);
  if (network.empty() && environment("LOCKSTEP_LOCAL_DIR").empty()) {
    checks.push_back({CheckState::kOk, "directory", directory.string(), ""});
    check_room(existing, checks);
    return;
  }
  const fs::path place = local_place();
  const std::string why =
      network.empty() ? "LOCKSTEP_LOCAL_DIR is set" : fmt::format("{} is on {}", directory.string(), network);
  if (place.empty()) {
    checks.push_back({CheckState::kProblem, "directory",
                      fmt::format("{}, and no local disk was found for the traces", why),
                      "set LOCKSTEP_LOCAL_DIR to a directory on a local disk"});
    return;
  }
  checks.push_back(
      {CheckState::kNote, "directory",
       fmt::format("{}: the traces lie in {}/lockstep-{} of each host, and pointers to them in {}", why,
                   place.string(), getuid(), directory.string()),
       "check or pack on each host, or collect the files before the hosts are cleaned"});
  check_room(existing_part(place), checks);
}

}  // namespace lockstep
