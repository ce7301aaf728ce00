#include "config.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "lockstep/trace_format.h"
#include "text.h"

namespace lockstep::shim {
namespace {

constexpr std::uint64_t kDefaultRing = 16U << 20;
constexpr std::uint64_t kSmallestRing = 2 * trace::kBlockBytes;
constexpr std::uint64_t kLargestRing = std::uint64_t{16} << 30;

const char* variable(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

template <std::size_t kSize>
void copy(char (&to)[kSize], const char* from) noexcept {
  Text(to).add(from);
}

std::int32_t first_number(std::initializer_list<const char*> names, std::int32_t fallback) noexcept {
  for (const char* name : names) {
    const char* value = variable(name);
    if (value == nullptr) continue;
    const std::int64_t number = parse_number(value, -1);
    if (number >= 0 && number <= 0x7FFF'FFFF) return static_cast<std::int32_t>(number);
  }
  return fallback;
}

// After the address where torch's ranks meet, if the environment says it.
bool name_by_meeting_place(Config& config, Text& run) noexcept {
  const char* address = variable("MASTER_ADDR");
  const char* port = variable("MASTER_PORT");
  if (address == nullptr || port == nullptr) return false;
  copy(config.launcher, "torch");
  run.add("torch-").add_name(address).add("-").add_name(port);
  return true;
}

// Which launch this process belongs to, in words that every process of it has: most specific first. A
// scheduler's job id alone would mix the launches of one job, hence the step; a PMIx name space alone may
// come back after a restart of the host's process numbers, hence the address of the launcher.
void read_run(Config& config) noexcept {
  Text run(config.run);
  if (const char* given = variable("LOCKSTEP_RUN")) {
    copy(config.launcher, "given");
    run.add_name(given);
  } else if (const char* elastic = variable("TORCHELASTIC_RUN_ID")) {
    copy(config.launcher, "torch");
    run.add("torch-").add_name(elastic);
    config.attempt = first_number({"TORCHELASTIC_RESTART_COUNT"}, 0);
    if (std::strcmp(elastic, "none") == 0) {
      // torchrun's default id; the store's port tells launches apart.
      if (const char* port = variable("MASTER_PORT")) run.add("-").add_name(port);
    }
  } else if (const char* name_space = variable("PMIX_NAMESPACE")) {
    copy(config.launcher, "pmix");
    run.add("pmix-").add_name(name_space);
    if (const char* uri = variable("OMPI_MCA_orte_hnp_uri")) {
      run.add("-").add_hex(trace::text_hash(uri, std::strlen(uri)) & 0xFFFF'FFFFU);
    }
  } else if (const char* job = variable("SLURM_JOB_ID");
             job != nullptr && variable("SLURM_PROCID") != nullptr) {
    copy(config.launcher, "slurm");
    run.add("slurm-").add_name(job);
    if (const char* step = variable("SLURM_STEP_ID")) run.add(".").add_name(step);
    config.attempt = first_number({"SLURM_RESTART_COUNT"}, 0);
  } else if (const char* flux = variable("FLUX_JOB_ID")) {
    copy(config.launcher, "flux");
    run.add("flux-").add_name(flux);
  } else if (const char* pals = variable("PALS_APID")) {
    copy(config.launcher, "pals");
    run.add("pals-").add_name(pals);
  } else if (variable("RANK") != nullptr && variable("WORLD_SIZE") != nullptr && name_by_meeting_place(config, run)) {
    // Its ranks share no parent, where they were started by hand or by an operator.
  } else {
    return;
  }
  if (config.attempt == 0) config.attempt = first_number({"LOCKSTEP_ATTEMPT"}, 0);
  run.add(".r").add_number(config.attempt);
}

}  // namespace

std::int64_t parse_number(const char* text, std::int64_t fallback) noexcept {
  if (text == nullptr || *text == '\0') return fallback;
  const bool negative = *text == '-';
  if (negative) ++text;
  std::int64_t value = 0;
  if (*text == '\0') return fallback;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || value > 0x0CCC'CCCC'CCCC'CCCBLL) return fallback;
    value = value * 10 + (*text - '0');
  }
  return negative ? -value : value;
}

std::uint64_t parse_size(const char* text, std::uint64_t fallback) noexcept {
  if (text == nullptr) return fallback;
  std::uint64_t value = 0;
  std::size_t digits = 0;
  for (; *text >= '0' && *text <= '9' && digits < 15; ++text, ++digits) {
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  }
  if (digits == 0) return fallback;
  switch (*text) {
    case 'k':
    case 'K':
      value <<= 10;
      ++text;
      break;
    case 'm':
    case 'M':
      value <<= 20;
      ++text;
      break;
    case 'g':
    case 'G':
      value <<= 30;
      ++text;
      break;
    default:
      break;
  }
  if (*text == 'i') ++text;
  if (*text == 'B' || *text == 'b') ++text;
  return *text == '\0' ? value : fallback;
}

void take_rank(Config& config, std::int32_t rank, std::int32_t ranks) noexcept {
  if (config.run[0] != '\0' || config.rank >= 0) return;
  config.rank = rank;
  config.ranks = ranks;
  Text run(config.run);
  if (name_by_meeting_place(config, run)) run.add(".r").add_number(first_number({"LOCKSTEP_ATTEMPT"}, 0));
}

void read_config(Config& config) noexcept {
  const char* wanted = variable("LOCKSTEP");
  if (wanted != nullptr && std::strcmp(wanted, "0") == 0) return;

  const char* waits = variable("LOCKSTEP_HOST_WAITS");
  config.host_waits = waits == nullptr || std::strcmp(waits, "0") != 0;

  const char* python = variable("LOCKSTEP_PYTHON");
  config.python = python == nullptr || std::strcmp(python, "0") != 0;

  const char* directory = variable("LOCKSTEP_DIR");
  copy(config.directory, directory != nullptr ? directory : "lockstep-trace");

  std::uint64_t ring = parse_size(variable("LOCKSTEP_RING"), kDefaultRing);
  if (ring < kSmallestRing) ring = kSmallestRing;
  if (ring > kLargestRing) ring = kLargestRing;
  config.ring_bytes = ring / trace::kBlockBytes * trace::kBlockBytes;

  config.file_mode = 0600;
  if (const char* mode = variable("LOCKSTEP_MODE")) {
    std::uint32_t value = 0;
    bool valid = std::strlen(mode) <= 4;
    for (const char* c = mode; valid && *c != '\0'; ++c) {
      valid = *c >= '0' && *c <= '7';
      if (valid) value = value * 8 + static_cast<std::uint32_t>(*c - '0');
    }
    if (valid) config.file_mode = (value & 0666) | 0600;
  }

  const char* local = variable("LOCKSTEP_LOCAL_DIR");
  config.local_dir_given = local != nullptr;
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"}) {
    if (local == nullptr) local = variable(name);
  }
  copy(config.local_directory, local != nullptr ? local : "/tmp");

  config.rank = first_number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK", "SLURM_PROCID"}, -1);
  config.ranks = first_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS"}, 0);
  config.local_rank =
      first_number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, -1);
  read_run(config);
  config.enabled = true;
}

}  // namespace lockstep::shim
