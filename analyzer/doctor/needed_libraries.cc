// The search order of ld.so(8).
#include "doctor/needed_libraries.h"

#include <glob.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/mapped_file.h"
#include "doctor/environment.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLibraries = 4096;

void add_folders(std::string_view list, const std::string& origin, std::vector<std::string>& folders) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(":;"), list.size());
    std::string folder(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    for (const std::string_view token : {"${ORIGIN}", "$ORIGIN"}) {
      if (const std::size_t at = folder.find(token); at != std::string::npos)
        folder.replace(at, token.size(), origin);
    }
    if (!folder.empty()) folders.push_back(std::move(folder));
  }
}

void read_loader_configuration(const std::string& path, int depth, std::vector<std::string>& folders) {
  std::ifstream file(path);
  for (std::string line; depth < 8 && std::getline(file, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    if (!line.starts_with("include ")) {
      folders.push_back(line);
      continue;
    }
    fs::path pattern = line.substr(line.find_last_of(" \t") + 1);
    if (pattern.is_relative()) pattern = fs::path(path).parent_path() / pattern;
    glob_t matches{};
    if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
      for (std::size_t i = 0; i < matches.gl_pathc; ++i)
        read_loader_configuration(matches.gl_pathv[i], depth + 1, folders);
    }
    globfree(&matches);
  }
}

std::vector<std::string> system_folders() {
  std::vector<std::string> folders;
  read_loader_configuration("/etc/ld.so.conf", 0, folders);
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) folders.emplace_back(folder);
  return folders;
}

struct User {
  std::string path;
  ElfFile file;
};

/// The file that the loader would take for `name`, and what is in it.
bool find_library(const std::string& name, const User& user, const User& program,
                  const std::vector<std::string>& system, User& found) {
  std::vector<std::string> folders;
  const auto origin = [](const User& of) { return fs::path(of.path).parent_path().string(); };
  if (user.file.runpath.empty()) {
    add_folders(user.file.rpath, origin(user), folders);
    if (program.file.runpath.empty()) add_folders(program.file.rpath, origin(program), folders);
  }
  add_folders(environment("LD_LIBRARY_PATH"), origin(program), folders);
  add_folders(user.file.runpath, origin(user), folders);
  folders.insert(folders.end(), system.begin(), system.end());
  if (name.find('/') != std::string::npos) folders = {""};
  for (const std::string& folder : folders) {
    const std::string path = (fs::path(folder) / name).string();
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    const auto mapped = MappedFile::open(path);
    if (!mapped) continue;
    auto file = read_elf(mapped->contents(), path);
    // The loader passes over libraries for other machines.
    if (!file || file->is_64_bit != program.file.is_64_bit || file->machine != program.file.machine) continue;
    found = {path, *std::move(file)};
    return true;
  }
  return false;
}

}  // namespace

std::vector<NeededLibrary> needed_libraries(const std::string& path, const ElfFile& program) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  std::vector<User> users{{error ? path : real.string(), program}};
  const std::vector<std::string> system = system_folders();
  std::vector<NeededLibrary> libraries;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < users.size(); ++i) {
    const std::vector<std::string> needed = users[i].file.needed;
    for (const std::string& name : needed) {
      if (libraries.size() >= kMaxLibraries) return libraries;
      if (!seen.insert(name).second) continue;
      User found;
      if (find_library(name, users[i], users[0], system, found)) {
        libraries.push_back({name, found.path});
        users.push_back(std::move(found));
      } else {
        libraries.push_back({name, ""});
      }
    }
  }
  return libraries;
}

}  // namespace lockstep
