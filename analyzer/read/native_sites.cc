// See the header.
#include "read/native_sites.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#ifdef LOCKSTEP_HAVE_LIBDW
#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>
#endif

namespace lockstep {
namespace {

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

}  // namespace

Frame offset_frame(const std::string& path, std::uint64_t file_offset) {
  const std::string module = path.empty() ? std::string("unknown module") : base_name(path);
  return {.function = fmt::format("{}+0x{:x}", module, file_offset)};
}

#ifdef LOCKSTEP_HAVE_LIBDW
namespace {

/// "ns::function(int)" as "ns::function": arguments make rows too long.
std::string readable(const char* linkage_name) {
  if (linkage_name == nullptr) return {};
  int status = 0;
  char* demangled = abi::__cxa_demangle(linkage_name, nullptr, nullptr, &status);
  std::string name = status == 0 && demangled != nullptr ? demangled : linkage_name;
  std::free(demangled);
  // The last bracket that is opened at depth 0: templates and operator() have others.
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      if (i != 0) name.resize(i);
      break;
    }
  }
  for (std::string_view anonymous = "(anonymous namespace)::"; name.starts_with(anonymous);) name.erase(0, anonymous.size());
  return name;
}

/// Debug information beside the file, by build id, and nowhere else: libdw's own search would ask servers.
int find_debug_file(Dwfl_Module* module, void** /*user*/, const char* /*name*/, Dwarf_Addr /*base*/, const char* /*file*/,
                    const char* /*link*/, GElf_Word /*crc*/, char** found) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int size = dwfl_module_build_id(module, &bits, &address);
  if (size < 2) return -1;
  std::string path = "/usr/lib/debug/.build-id/";
  for (int i = 0; i < size; ++i) path += fmt::format("{:02x}{}", bits[i], i == 0 ? "/" : "");
  path += ".debug";
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor >= 0) *found = ::strdup(path.c_str());
  return descriptor;
}

const Dwfl_Callbacks kCallbacks = {.find_elf = nullptr,
                                   .find_debuginfo = find_debug_file,
                                   .section_address = dwfl_offline_section_address,
                                   .debuginfo_path = nullptr};

}  // namespace

class NativeSites::Module {
 public:
  Module(const std::string& path, const std::string& build_id) : path_(path) {
    struct stat status {};
    if (path.empty() || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    dwfl_ = dwfl_begin(&kCallbacks);
    if (dwfl_ == nullptr) return;
    module_ = dwfl_report_offline(dwfl_, path.c_str(), path.c_str(), -1);
    dwfl_report_end(dwfl_, nullptr, nullptr);
    if (module_ != nullptr && !has_build_id(build_id)) module_ = nullptr;
  }
  ~Module() {
    if (dwfl_ != nullptr) dwfl_end(dwfl_);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::vector<Frame> frames(std::uint64_t file_offset) {
    const std::optional<Dwarf_Addr> address = address_of(file_offset);
    std::vector<Frame> frames;
    if (address) add_debug_frames(*address - 1, frames);  // the call stands before its return address
    if (frames.empty() && address) {
      const char* symbol = dwfl_module_addrname(module_, *address - 1);
      if (symbol != nullptr) frames.push_back({.function = readable(symbol)});
    }
    if (frames.empty()) frames.push_back(offset_frame(path_, file_offset));
    return frames;
  }

 private:
  bool has_build_id(const std::string& wanted) const {
    if (wanted.empty()) return true;
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    GElf_Addr bias = 0;
    if (dwfl_module_getelf(module_, &bias) == nullptr) return false;
    const int size = dwfl_module_build_id(module_, &bits, &address);
    if (size <= 0) return true;
    return std::string_view(reinterpret_cast<const char*>(bits), static_cast<std::size_t>(size)) == wanted;
  }

  std::optional<Dwarf_Addr> address_of(std::uint64_t file_offset) const {
    if (module_ == nullptr) return std::nullopt;
    GElf_Addr bias = 0;
    Elf* elf = dwfl_module_getelf(module_, &bias);
    std::size_t count = 0;
    if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
      if (file_offset < segment.p_offset || file_offset - segment.p_offset > segment.p_filesz) continue;
      if ((segment.p_flags & PF_X) == 0) continue;
      return file_offset - segment.p_offset + segment.p_vaddr + bias;
    }
    return std::nullopt;
  }

  static std::string name_of(Dwarf_Die* die) {
    Dwarf_Attribute attribute;
    for (const unsigned key : {static_cast<unsigned>(DW_AT_linkage_name), static_cast<unsigned>(DW_AT_MIPS_linkage_name)}) {
      if (dwarf_attr_integrate(die, key, &attribute) != nullptr) return readable(dwarf_formstring(&attribute));
    }
    const char* name = dwarf_diename(die);
    return name == nullptr ? std::string() : std::string(name);
  }

  void add_debug_frames(Dwarf_Addr address, std::vector<Frame>& frames) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = dwfl_module_addrdie(module_, address, &bias);
    if (unit == nullptr) return;
    Frame here;
    if (Dwfl_Line* line = dwfl_module_getsrc(module_, address)) {
      int number = 0;
      const char* file = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
      if (file != nullptr) here.file = base_name(file);
      here.line = number > 0 ? static_cast<std::uint32_t>(number) : 0;
    }
    Dwarf_Die* scopes = nullptr;
    const int count = dwarf_getscopes(unit, address - bias, &scopes);
    if (count > 0) {
      Dwarf_Die* inner = nullptr;
      const int depth = dwarf_getscopes_die(&scopes[0], &inner);
      add_scopes(inner, depth, here, frames, unit);
      std::free(inner);
    }
    std::free(scopes);
  }

  /// `here` is the place in the innermost function; each inlined one says where it was called.
  static void add_scopes(Dwarf_Die* scopes, int depth, Frame here, std::vector<Frame>& frames, Dwarf_Die* unit) {
    constexpr std::size_t kMostFrames = 16;
    for (int i = 0; i < depth && frames.size() < kMostFrames; ++i) {
      const int tag = dwarf_tag(&scopes[i]);
      if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
      // A wrapper that its author marked [[gnu::artificial]] is to be seen as part of its caller, as in a debugger.
      if (tag == DW_TAG_subprogram || !is_artificial(&scopes[i])) {
        here.function = name_of(&scopes[i]);
        frames.push_back(here);
      }
      if (tag == DW_TAG_subprogram) return;
      here = caller_of(&scopes[i], unit);
    }
  }

  static bool is_artificial(Dwarf_Die* inlined) {
    Dwarf_Attribute attribute;
    bool marked = false;
    return dwarf_formflag(dwarf_attr_integrate(inlined, DW_AT_artificial, &attribute), &marked) == 0 && marked;
  }

  static Frame caller_of(Dwarf_Die* inlined, Dwarf_Die* unit) {
    Frame caller;
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0) {
      caller.line = static_cast<std::uint32_t>(value);
    }
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 &&
        dwarf_getsrcfiles(unit, &files, &count) == 0 && value < count) {
      const char* file = dwarf_filesrc(files, value, nullptr, nullptr);
      if (file != nullptr) caller.file = base_name(file);
    }
    return caller;
  }

  std::string path_;
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
};
#else
class NativeSites::Module {
 public:
  Module(const std::string& path, const std::string& /*build_id*/) : path_(path) {}
  std::vector<Frame> frames(std::uint64_t file_offset) { return {offset_frame(path_, file_offset)}; }

 private:
  std::string path_;
};
#endif

NativeSites::NativeSites() = default;
NativeSites::~NativeSites() = default;

const std::vector<Frame>& NativeSites::frames(const std::string& path, const std::string& build_id, std::uint64_t file_offset) {
  const auto [at, added] = known_.try_emplace({path, build_id, file_offset});
  if (added) {
    auto& module = modules_[{path, build_id}];
    if (module == nullptr) module = std::make_unique<Module>(path, build_id);
    at->second = module->frames(file_offset);
  }
  return at->second;
}

}  // namespace lockstep
