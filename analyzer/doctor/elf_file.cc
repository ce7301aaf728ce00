// Every offset and size of the file is checked against its length before use.
#include "doctor/elf_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace lockstep {
namespace {

using namespace std::string_view_literals;

// More than any linker writes; a hostile file must not cost more than this many steps.
constexpr std::uint64_t kMaxEntries = 65536;
constexpr std::size_t kMaxText = 4096;  // PATH_MAX

class Bytes {
 public:
  explicit Bytes(std::string_view contents) : contents_(contents) {}

  template <class T>
  std::optional<T> at(std::uint64_t offset) const {
    T value;
    if (offset > contents_.size() || contents_.size() - offset < sizeof value) return std::nullopt;
    std::memcpy(&value, contents_.data() + offset, sizeof value);
    return value;
  }

  /// The text that starts there and ends with a zero byte; empty where there is none of at most a path's
  /// length.
  std::string_view text(std::uint64_t offset) const {
    if (offset >= contents_.size()) return {};
    const std::string_view rest = contents_.substr(offset, kMaxText);
    const std::size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
  }

 private:
  std::string_view contents_;
};

std::vector<Elf64_Phdr> segments_of(const Bytes& bytes, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  for (std::uint64_t i = 0; i < header.e_phnum && header.e_phentsize >= sizeof(Elf64_Phdr); ++i) {
    const auto segment = bytes.at<Elf64_Phdr>(header.e_phoff + i * header.e_phentsize);
    if (!segment) break;
    segments.push_back(*segment);
  }
  return segments;
}

std::optional<std::uint64_t> offset_of(std::span<const Elf64_Phdr> segments, std::uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  }
  return std::nullopt;
}

void read_dynamic(const Bytes& bytes, std::span<const Elf64_Phdr> segments, const Elf64_Phdr& dynamic,
                  ElfFile& file) {
  std::vector<Elf64_Dyn> entries;
  std::optional<std::uint64_t> strings;
  const std::uint64_t count = std::min(dynamic.p_filesz / sizeof(Elf64_Dyn), kMaxEntries);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto entry = bytes.at<Elf64_Dyn>(dynamic.p_offset + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_STRTAB) strings = offset_of(segments, entry->d_un.d_ptr);
    entries.push_back(*entry);
  }
  if (!strings) return;
  for (const Elf64_Dyn& entry : entries) {
    const auto text = [&] { return std::string(bytes.text(*strings + entry.d_un.d_val)); };
    switch (entry.d_tag) {
      case DT_NEEDED:
        file.needed.push_back(text());
        break;
      case DT_SONAME:
        file.soname = text();
        break;
      case DT_RPATH:
        file.rpath = text();
        break;
      case DT_RUNPATH:
        file.runpath = text();
        break;
      default:
        break;
    }
  }
  std::erase(file.needed, "");
}

}  // namespace

bool is_elf(std::string_view contents) {
  return contents.starts_with(
      "\x7f"
      "ELF"sv);
}

Result<ElfFile> read_elf(std::string_view contents, std::string_view path) {
  const auto malformed = [path](std::string_view why) {
    return Error{ErrorCode::kMalformed, fmt::format("{}: {}", path, why)};
  };
  const Bytes bytes(contents);
  // Both classes agree up to e_machine.
  const auto start = bytes.at<Elf32_Ehdr>(0);
  if (!start || !is_elf(contents)) return malformed("not an ELF program or library");
  if (start->e_ident[EI_DATA] != ELFDATA2LSB) return malformed("an ELF file for a big-endian machine");
  ElfFile file;
  file.is_64_bit = start->e_ident[EI_CLASS] == ELFCLASS64;
  file.machine = start->e_machine;
  file.is_shared = start->e_type == ET_DYN;
  if (start->e_type != ET_DYN && start->e_type != ET_EXEC)
    return malformed("an ELF file that is no program and no library");
  if (!file.is_64_bit) return file;
  const auto header = bytes.at<Elf64_Ehdr>(0);
  if (!header) return malformed("an ELF file that was cut");
  const std::vector<Elf64_Phdr> segments = segments_of(bytes, *header);
  if (segments.size() != header->e_phnum)
    return malformed("an ELF file that was cut: its segments are not all there");
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) file.interpreter = bytes.text(segment.p_offset);
  }
  const auto dynamic = std::ranges::find(segments, Elf64_Word{PT_DYNAMIC}, &Elf64_Phdr::p_type);
  if (dynamic != segments.end()) read_dynamic(bytes, segments, *dynamic, file);
  return file;
}

ElfSymbols find_symbols(std::string_view contents, std::span<const std::string_view> names) {
  ElfSymbols found;
  const Bytes bytes(contents);
  const auto header = bytes.at<Elf64_Ehdr>(0);
  if (!is_elf(contents) || !header || header->e_ident[EI_CLASS] != ELFCLASS64) return found;
  const auto section = [&](std::uint64_t index) {
    return header->e_shentsize < sizeof(Elf64_Shdr)
               ? std::nullopt
               : bytes.at<Elf64_Shdr>(header->e_shoff + index * header->e_shentsize);
  };
  std::uint64_t left = contents.size() / sizeof(Elf64_Sym);  // tables do not overlap in an honest file
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto table = section(i);
    if (!table) break;
    if (table->sh_type != SHT_DYNSYM && table->sh_type != SHT_SYMTAB) continue;
    const auto strings = section(table->sh_link);
    if (!strings) continue;
    const std::uint64_t count = std::min(table->sh_size / sizeof(Elf64_Sym), left);
    left -= count;
    for (std::uint64_t k = 0; k < count; ++k) {
      const auto symbol = bytes.at<Elf64_Sym>(table->sh_offset + k * sizeof(Elf64_Sym));
      if (!symbol) break;
      const std::uint64_t offset = strings->sh_offset + symbol->st_name;
      for (const std::string_view name : names) {
        // Compared in place: hunting for the end of every name would be quadratic in a hostile file.
        if (offset >= contents.size() || !contents.substr(offset).starts_with(name)) continue;
        if (bytes.at<char>(offset + name.size()) != '\0') continue;
        (symbol->st_shndx == SHN_UNDEF ? found.imported : found.defined).insert(name);
      }
    }
  }
  return found;
}

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "x86";
    case EM_ARM:
      return "arm";
    case EM_PPC64:
      return "ppc64";
    case EM_RISCV:
      return "riscv";
    default:
      return fmt::format("machine {}", machine);
  }
}

}  // namespace lockstep
