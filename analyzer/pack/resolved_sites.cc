// See the header.
#include "pack/resolved_sites.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/trace_record.h"
#include "pack/record_as.h"

namespace lockstep {
namespace {

using trace::SideHeader;
using trace::SideKind;

struct Module {
  std::string path{};
  std::string build_id{};
};

Module module_of(std::string_view record) {
  const auto head = as<trace::ModuleRecord>(record);
  if (record.size() < sizeof head || head.build_id_bytes > record.size() - sizeof head) return {};
  const std::string_view path = record.substr(sizeof head + head.build_id_bytes);
  return {std::string(path.substr(0, path.find('\0'))),
          std::string(record.substr(sizeof head, head.build_id_bytes))};
}

/// As NativeSites says that it found nothing but the offset.
bool is_resolved(const std::vector<Frame>& frames) {
  return !frames.empty() && (frames.size() > 1 || !frames[0].file.empty() ||
                             frames[0].function.find("+0x") == std::string::npos);
}

std::string frames_record(std::uint32_t site, const std::vector<Frame>& frames) {
  std::string texts;
  for (const Frame& frame : frames) {
    texts.append(reinterpret_cast<const char*>(&frame.line), sizeof frame.line);
    texts += frame.file;
    texts += '\0';
    texts += frame.function;
    texts += '\0';
  }
  trace::PythonSiteRecord record;
  record.header = {trace::kSideMagic, SideKind::kPythonSite, trace::kSideCommitted,
                   static_cast<std::uint32_t>(sizeof record + texts.size())};
  record.site = site;
  record.frames = static_cast<std::uint32_t>(frames.size());
  return std::string(reinterpret_cast<const char*>(&record), sizeof record) + texts;
}

}  // namespace

void add_resolved_sites(TraceCopy& trace, NativeSites& sites) {
  std::map<std::uint32_t, Module> modules;
  std::set<std::uint32_t> with_frames;
  for (const std::string& record : trace.side_records) {
    const SideKind kind = as<SideHeader>(record).kind;
    if (kind == SideKind::kModule) modules[as<trace::ModuleRecord>(record).module] = module_of(record);
    if (kind == SideKind::kPythonSite) with_frames.insert(as<trace::PythonSiteRecord>(record).site);
  }
  std::vector<std::string> added;
  for (const std::string& record : trace.side_records) {
    if (as<SideHeader>(record).kind != SideKind::kCallSite) continue;
    const auto site = as<trace::CallSiteRecord>(record);
    const auto module = modules.find(site.module);
    if (module == modules.end() || !with_frames.insert(site.site).second) continue;
    const std::vector<Frame>& frames =
        sites.frames(module->second.path, module->second.build_id, site.file_offset);
    if (is_resolved(frames)) added.push_back(frames_record(site.site, frames));
  }
  trace.side_records.insert(trace.side_records.end(), added.begin(), added.end());
}

}  // namespace lockstep
