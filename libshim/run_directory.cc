#include "run_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "text.h"

namespace lockstep::shim {
namespace {

// File systems whose pages other hosts can take away, or whose mapped writes are slow or fail late: f_type
// values of statfs(2), linux/magic.h and the file systems' own sources.
bool is_network_file_system(const char* path) noexcept {
  struct statfs info {};
  if (statfs(path, &info) != 0) return false;
  switch (static_cast<std::uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x517B:      // SMB
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS (FhGFS)
    case 0x00C36400:  // Ceph
    case 0x65735546:  // FUSE: sshfs, gcsfuse, s3fs ...
    case 0x01021997:  // 9P
    case 0x6B414653:  // AFS
    case 0x5346414F:  // OpenAFS
    case 0x20030528:  // OrangeFS
    case 0x7461636F:  // OCFS2
    case 0x01161970:  // GFS2
    case 0xAAD7AAEA:  // PanFS
      return true;
    default:
      return false;
  }
}

// Who may read the files may also list their directories.
mode_t directory_mode(const Config& config) noexcept {
  return 0700U | ((config.file_mode & 0040U) != 0 ? 0050U : 0U) |
         ((config.file_mode & 0004U) != 0 ? 0005U : 0U);
}

// Makes every missing part of `path`.
bool make_directories(const char* path, mode_t mode) noexcept {
  char part[kMaxPath];
  const std::size_t length = std::strlen(path);
  if (length == 0 || length >= kMaxPath) return false;
  std::memcpy(part, path, length + 1);
  for (std::size_t i = 1; i <= length; ++i) {
    if (part[i] != '/' && part[i] != '\0') continue;
    const char kept = part[i];
    part[i] = '\0';
    if (mkdir(part, mode) != 0 && errno != EEXIST) return false;
    part[i] = kept;
  }
  return true;
}

std::size_t read_file(const char* path, char* buffer, std::size_t size) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, buffer, size - 1);
  close(file);
  const std::size_t length = got > 0 ? static_cast<std::size_t>(got) : 0;
  buffer[length] = '\0';
  return length;
}

// Hydra gives its ranks no id. Its proxy, their parent, has the launcher's address on its command line.
bool hydra_run(Text& run) noexcept {
  char path[64];
  Text(path).add("/proc/").add_number(getppid()).add("/cmdline");
  char line[2048];
  const std::size_t length = read_file(path, line, sizeof line);
  for (std::size_t at = 0; at < length; at += std::strlen(line + at) + 1) {
    if (std::strcmp(line + at, "--control-port") != 0) continue;
    const std::size_t next = at + std::strlen(line + at) + 1;
    if (next >= length) return false;
    run.add("hydra-").add_name(line + next);
    return true;
  }
  return false;
}

// A launcher that gives ranks and no id: its processes on one host share their parent and the time it
// started.
void local_run(Text& run, const char* host) noexcept {
  char path[64];
  Text(path).add("/proc/").add_number(getppid()).add("/stat");
  char line[1024];
  read_file(path, line, sizeof line);
  // Field 22, counted from behind the command name, which may hold anything.
  const char* field = std::strrchr(line, ')');
  for (int i = 0; field != nullptr && i < 20; ++i) field = std::strchr(field + 1, ' ');
  char started[32] = {};
  if (field != nullptr) {
    Text text(started);
    for (++field; *field >= '0' && *field <= '9'; ++field) text.add(field, 1);
  }
  run.add("local-").add_name(host).add("-").add_number(getppid()).add("-").add(started);
}

// In a directory that everybody may write to: ours, and not a link that somebody else put there.
bool is_own_directory(const char* path) noexcept {
  struct statx info {};
  return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_UID, &info) == 0 &&
         S_ISDIR(info.stx_mode) && info.stx_uid == getuid();
}

// A directory for this run on a disk of this host.
bool make_local_directory(const Config& config, const char* run, char (&directory)[kMaxPath]) noexcept {
  for (const char* base : {config.local_directory, "/tmp", "/dev/shm"}) {
    Text path(directory);
    path.add(base).add("/lockstep-").add_number(static_cast<std::int64_t>(getuid()));
    if (directory[0] != '/' || path.cut() || !make_directories(directory, directory_mode(config))) continue;
    if (!is_own_directory(directory) || (!config.local_dir_given && is_network_file_system(directory)))
      continue;
    path.add("/").add(run);
    if (!path.cut() && make_directories(directory, directory_mode(config))) return true;
  }
  return false;
}

}  // namespace

const char* find_trace_place(const Config& config, std::uint64_t start_unix_ns, TracePlace& place) noexcept {
  utsname names{};
  Text(place.host).add_name(uname(&names) == 0 && names.nodename[0] != '\0' ? names.nodename : "host");

  char executable[kMaxPath];
  const ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
  executable[length > 0 ? length : 0] = '\0';
  const char* slash = std::strrchr(executable, '/');
  Text(place.program).add(slash != nullptr ? slash + 1 : executable);

  Text run(place.run);
  if (config.run[0] != '\0') {
    run.add(config.run);
    if (config.launcher[0] != '\0') Text(place.launcher).add(config.launcher);
  } else {
    Text launcher(place.launcher);
    if (config.rank < 0) {  // on its own: a run of one
      launcher.add("single");
      run.add("single-").add(place.host).add("-").add_number(getpid()).add("-").add_hex(start_unix_ns);
    } else if (hydra_run(run)) {
      launcher.add("hydra");
    } else {
      launcher.add("local");
      local_run(run, place.host);
    }
    run.add(".r").add_number(config.attempt);
  }

  char stem[256];
  Text(stem).add(place.host).add(".").add_number(getpid()).add(".").add_hex(start_unix_ns);

  char directory[kMaxPath];
  Text text(directory);
  if (config.directory[0] != '/') {
    char here[kMaxPath];
    if (getcwd(here, sizeof here) == nullptr) return "the working directory is gone";
    text.add(here).add("/");
  }
  text.add(config.directory).add("/").add(place.run);
  if (text.cut() || text.length() + sizeof stem > kMaxPath) return "LOCKSTEP_DIR is too long";
  if (!make_directories(directory, directory_mode(config))) return "cannot make the directory";
  Text(place.directory).add(directory);

  if (!config.local_dir_given && !is_network_file_system(directory)) {
    Text(place.file).add(directory).add("/").add(stem).add(".lst");
    return nullptr;
  }
  Text(place.pointer).add(directory).add("/").add(stem).add(".ptr");
  if (!make_local_directory(config, place.run, directory)) return "no local disk for the ring";
  Text(place.file).add(directory).add("/").add(stem).add(".lst");
  return nullptr;
}

bool write_pointer(const Config& config, const TracePlace& place) noexcept {
  if (place.pointer[0] == '\0') return true;
  const int file =
      open(place.pointer, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, config.file_mode);
  if (file < 0) return false;
  char content[kMaxPath + 256];
  Text text(content);
  text.add("lockstep-pointer 1\n").add(place.host).add("\n").add(place.file).add("\n");
  const bool written = write(file, text.c_str(), text.length()) == static_cast<ssize_t>(text.length());
  close(file);
  return written;
}

}  // namespace lockstep::shim
