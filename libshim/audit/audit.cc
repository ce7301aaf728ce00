// liblockstep_audit.so, for LD_AUDIT: programs that open NCCL by dlopen and take its functions by dlsym (Python's ctypes) bind past what is
// preloaded. The loader asks here about every symbol of NCCL that another object binds to, or looks up; the answer is the recorder's
// function of that name, if liblockstep.so is in the process. Nothing else of the process is touched.
//
// The loader keeps this library in a name space of its own, so it must not call anything: it needs no library at all.
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

#define LOCKSTEP_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

bool equal(const char* left, const char* right) {
  while (*left != '\0' && *left == *right) {
    ++left;
    ++right;
  }
  return *left == *right;
}

bool begins_with(const char* text, const char* prefix) {
  while (*prefix != '\0') {
    if (*text++ != *prefix++) return false;
  }
  return true;
}

const char* file_name(const char* path) {
  const char* name = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

/// The dynamic symbols of a loaded object.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  std::size_t count = 0;
};

std::size_t count_by_gnu_hash(const std::uint32_t* header) {
  const std::uint32_t buckets = header[0];
  const std::uint32_t first = header[1];
  const std::uint32_t* bucket = header + 4 + std::size_t{header[2]} * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) {
    if (bucket[i] > last) last = bucket[i];
  }
  if (last < first) return first;
  while ((chain[last - first] & 1U) == 0) ++last;
  return std::size_t{last} + 1;
}

Symbols symbols_of(const link_map& map) {
  Symbols symbols;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto address = entry->d_un.d_ptr;  // glibc has relocated it
    if (entry->d_tag == DT_SYMTAB) symbols.table = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) symbols.names = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) symbols.count = count_by_gnu_hash(reinterpret_cast<const std::uint32_t*>(address));
    if (entry->d_tag == DT_HASH) symbols.count = reinterpret_cast<const std::uint32_t*>(address)[1];
  }
  return symbols;
}

const link_map* g_recorder = nullptr;

std::uintptr_t address_in_recorder(const char* name) {
  if (g_recorder == nullptr) return 0;
  const Symbols symbols = symbols_of(*g_recorder);
  if (symbols.table == nullptr || symbols.names == nullptr) return 0;
  for (std::size_t i = 0; i < symbols.count; ++i) {
    const ElfW(Sym)& symbol = symbols.table[i];
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) continue;
    if (equal(symbols.names + symbol.st_name, name)) return g_recorder->l_addr + symbol.st_value;
  }
  return 0;
}

bool is_nccl(const char* path) {
  const char* name = file_name(path);
  return begins_with(name, "libnccl.") || begins_with(name, "libnccl-") || begins_with(name, "librccl.");
}

}  // namespace

LOCKSTEP_EXPORT unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

LOCKSTEP_EXPORT unsigned la_objopen(link_map* map, Lmid_t name_space, std::uintptr_t*) {
  if (name_space != LM_ID_BASE) return 0;
  const char* name = file_name(map->l_name);
  if (equal(name, "liblockstep.so")) {
    g_recorder = map;
    return 0;  // what it looks up is what it gets
  }
  return is_nccl(name) ? LA_FLG_BINDTO : LA_FLG_BINDFROM;
}

LOCKSTEP_EXPORT unsigned la_objclose(std::uintptr_t*) { return 0; }

// A cookie that nobody changed is the object's link_map. dlsym asks here when either side wants it, so also about what the recorder and
// NCCL itself look up: both get the real one.
LOCKSTEP_EXPORT std::uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned, std::uintptr_t* from, std::uintptr_t* to, unsigned* flags,
                                            const char* name) {
  *flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
  const auto* asking = reinterpret_cast<const link_map*>(*from);
  const auto* asked = reinterpret_cast<const link_map*>(*to);
  if (!begins_with(name, "nccl") || asking == g_recorder || asking == asked || !is_nccl(asked->l_name)) return symbol->st_value;
  const std::uintptr_t ours = address_in_recorder(name);
  return ours != 0 ? ours : symbol->st_value;
}
