// Knows which side records hold which texts.
#include "pack/redaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <vector>

#include "lockstep/trace_record.h"
#include "pack/record_as.h"

namespace lockstep {
namespace {

using trace::SideHeader;
using trace::SideKind;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

/// The texts that end with a zero byte in the rest of a record; one that does not end is damaged and left
/// out.
std::vector<std::string_view> texts_of(std::string_view rest) {
  std::vector<std::string_view> texts;
  for (std::size_t end = 0; (end = rest.find('\0')) != std::string_view::npos; rest.remove_prefix(end + 1))
    texts.push_back(rest.substr(0, end));
  return texts;
}

std::string record_of(std::string_view fixed, const std::vector<std::string>& texts) {
  std::string record(fixed);
  for (const std::string& text : texts) {
    record += text;
    record += '\0';
  }
  auto head = as<SideHeader>(record);
  head.bytes = static_cast<std::uint32_t>(record.size());
  std::memcpy(record.data(), &head, sizeof head);
  return record;
}

/// What stands before the texts of a record; nullopt: nothing is known about the kind.
std::optional<std::size_t> bytes_before_texts(std::string_view record) {
  switch (as<SideHeader>(record).kind) {
    case SideKind::kProcess:
      return sizeof(trace::ProcessRecord);
    case SideKind::kCommunicator: {
      const auto comm = as<trace::CommRecord>(record);
      return sizeof comm + (std::size_t{comm.ranges} + comm.remote_ranges) * sizeof(trace::RankRange);
    }
    case SideKind::kModule:
      return sizeof(trace::ModuleRecord) + as<trace::ModuleRecord>(record).build_id_bytes;
    case SideKind::kDatatype:
    case SideKind::kRedop:
      return sizeof(trace::NamedRecord);
    case SideKind::kNote:
    case SideKind::kCommName:
    case SideKind::kLibrary:
      return sizeof(trace::TextRecord);
    case SideKind::kPythonSite:
      return sizeof(trace::PythonSiteRecord);
    case SideKind::kCommEnd:
    case SideKind::kCommAlias:
    case SideKind::kCallSite:
    case SideKind::kVector:
      return record.size();
  }
  return std::nullopt;
}

}  // namespace

void Redaction::learn(const TraceCopy& trace) {
  for (const std::string& record : trace.side_records) {
    if (as<SideHeader>(record).kind != SideKind::kProcess || record.size() < sizeof(trace::ProcessRecord))
      continue;
    const auto texts = texts_of(std::string_view(record).substr(sizeof(trace::ProcessRecord)));
    if (!texts.empty()) learn_host(texts[0]);
  }
}

void Redaction::learn_host(std::string_view host) {
  if (host.empty()) return;
  host_names_.emplace(host);
  // "node3" of "node3.cluster.example", but not "10" of an address.
  const std::string_view label = host.substr(0, host.find('.'));
  if (label.find_first_not_of("0123456789") != std::string_view::npos) host_names_.emplace(label);
}

std::string Redaction::without_hosts(std::string_view text) {
  if (!hosts_) return std::string(text);
  if (host_tokens_.empty()) {
    int hosts = 0;
    // By full name, so that the numbers follow the order of the names; a short form is the same host.
    for (const std::string& name : host_names_) {
      const std::string label = name.substr(0, name.find('.'));
      const auto known = host_tokens_.find(label);
      host_tokens_[name] = known != host_tokens_.end() ? known->second : fmt::format("host{}", ++hosts);
    }
  }
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool word_begins = at == 0 || !is_word(text[at - 1]);
    const std::pair<const std::string, std::string>* longest = nullptr;
    for (const auto& known : host_tokens_) {
      const std::string& name = known.first;
      if (!word_begins || !text.substr(at).starts_with(name)) continue;
      if (at + name.size() < text.size() && is_word(text[at + name.size()])) continue;
      if (longest == nullptr || name.size() > longest->first.size()) longest = &known;
    }
    if (longest == nullptr) {
      result += text[at++];
      continue;
    }
    result += longest->second;
    at += longest->first.size();
  }
  return result;
}

std::string Redaction::path(std::string_view text) {
  if (!paths_) return without_hosts(text);
  std::string result;
  for (;;) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    if (const std::string_view part = text.substr(0, slash); !part.empty()) {
      auto [known, is_new] = path_tokens_.try_emplace(std::string(part));
      if (is_new) known->second = fmt::format("path{}", path_tokens_.size());
      result += known->second;
    }
    if (slash == text.size()) return result;
    result += '/';
    text.remove_prefix(slash + 1);
  }
}

std::string Redaction::free_text(std::string_view text) {
  constexpr std::string_view kEnds = " \t\n\r\"'`=,;:()<>[]{}|";
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(kEnds);
    std::string_view word = text.substr(0, end);
    // "root@build-host", as library versions have it.
    if (hosts_ && word.find('@') != std::string_view::npos) word = "account";
    result += paths_ && word.find('/') != std::string_view::npos ? path(word) : std::string(word);
    if (end == std::string_view::npos) break;
    result += text[end];
    text.remove_prefix(end + 1);
  }
  return without_hosts(result);
}

std::string Redaction::run(std::string_view text) {
  if (!hosts_) return std::string(text);
  // Launchers put hosts into it in many ways. What counts is that equal runs stay equal, and the attempt.
  const std::size_t attempt = text.rfind(".r");
  const std::string_view name = text.substr(0, attempt);
  auto [known, is_new] = run_tokens_.try_emplace(std::string(name));
  if (is_new) known->second = fmt::format("run{}", run_tokens_.size());
  return known->second + std::string(attempt == std::string_view::npos ? "" : text.substr(attempt));
}

std::string Redaction::side_record(std::string_view record) {
  const auto fixed = bytes_before_texts(record);
  if (!fixed || *fixed > record.size()) return "";
  const std::string_view before = record.substr(0, *fixed);
  const std::string_view rest = record.substr(*fixed);
  std::vector<std::string> texts;
  const SideKind kind = as<SideHeader>(record).kind;
  if (kind == SideKind::kPythonSite) {
    // Each frame: a line number of four bytes, file, function.
    std::string frames(before);
    for (std::string_view left = rest; left.size() > 4;) {
      const std::size_t file_end = left.find('\0', 4);
      const std::size_t end = file_end == std::string_view::npos ? file_end : left.find('\0', file_end + 1);
      if (end == std::string_view::npos) break;
      frames += left.substr(0, 4);
      frames += path(left.substr(4, file_end - 4));
      frames += left.substr(file_end, end + 1 - file_end);
      left.remove_prefix(end + 1);
    }
    return record_of(frames, {});
  }
  for (const std::string_view text : texts_of(rest)) {
    if (kind == SideKind::kProcess) {
      // Host, program, run, launcher, version of the recorder, directory.
      switch (texts.size()) {
        case 1:
          texts.push_back(path(text));
          break;
        case 2:
          texts.push_back(run(text));
          break;
        case 5:
          texts.push_back(path(text));
          break;
        default:
          texts.push_back(without_hosts(text));
          break;
      }
    } else if (kind == SideKind::kModule) {
      texts.push_back(path(text));
    } else {
      texts.push_back(free_text(text));
    }
  }
  return record_of(before, texts);
}

void Redaction::apply(TraceCopy& trace) {
  if (!paths_ && !hosts_) return;
  for (std::string& record : trace.side_records) record = side_record(record);
  std::erase(trace.side_records, "");
}

std::string Redaction::member_name(const TraceCopy& copy) {
  std::string host = "host";
  std::string run_name = "run";
  for (const std::string& record : copy.side_records) {
    if (as<SideHeader>(record).kind != SideKind::kProcess || record.size() < sizeof(trace::ProcessRecord))
      continue;
    const auto texts = texts_of(std::string_view(record).substr(sizeof(trace::ProcessRecord)));
    if (!texts.empty()) host = texts[0];
    if (texts.size() > 2) run_name = texts[2];
  }
  return fmt::format("{}/{}.{}.{:x}.lst", run_name, host, copy.header.pid, copy.header.start_unix_ns);
}

}  // namespace lockstep
