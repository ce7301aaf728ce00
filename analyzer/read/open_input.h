// Opening one input: what it is, and the way to read it that suits it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mapped_file.h"
#include "read/formats.h"

namespace lockstep {

struct OpenedInput {
  const EvidenceFormat* format = nullptr;
  std::optional<MappedFile> file{};           ///< or:
  std::unique_ptr<ParsedEvidence> parsed{};   ///< read already, in one pass
};

/// Opens `path`, "-" for standard input; gzip and zstd are unpacked. Formats that one pass can read are read here, in bounded
/// memory; of the others a plain file is mapped, and a pipe or what is unpacked is held in memory, up to a limit. An Error
/// names the path, and what the file seems to be where it is of no known format.
Result<OpenedInput> open_input(const std::string& path, const ReadProgress& progress);

}  // namespace lockstep
