// Positions, then keys, each as job_line.cc reads it back; see the header.
#include "read/job_line_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "read/native_names.h"
#include "read/site_text.h"

namespace lockstep {
namespace {

bool brackets_close(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '[') ++depth;
    if (c == ']' && --depth < 0) return false;
  }
  return depth == 0;
}

/// A value of a key: one word, and no ';' or open bracket that would end a batch.
std::string word(std::string_view text) { return escape_word(text, brackets_close(text) ? ";" : ";[]"); }

/// A word that is no key, no type and no "?" either.
std::string bare_word(std::string_view text) { return escape_word(text, ";[]=?"); }

class LineWriter {
 public:
  LineWriter(const Job& job, const std::vector<std::string>& names, const Operation& operation, std::string& text)
      : job_(job), names_(names), operation_(operation), text_(text) {}

  void write() {
    text_ += op_name(operation_.kind == OpKind::kUnknown ? OpKind::kOpaque : operation_.kind);
    if (operation_.kind == OpKind::kExit) return;
    if (operation_.kind == OpKind::kCompute) {
      write_computation(job_.extra(operation_).label);
      return;
    }
    write_positions();
    write_keys();
  }

 private:
  void write_positions() {
    const OpKind kind = operation_.kind;
    const bool names_peer = is_point_to_point(kind) || kind == OpKind::kProbe || kind == OpKind::kIprobe;
    if ((op_class(kind) == OpClass::kCompletion || kind == OpKind::kGraphLaunch) && !names_peer) {
      if (operation_.peer != kNoPeer || operation_.comm != kNoComm) write_peer();
      if (operation_.comm != kNoComm) write_group();
      write_type_as_keys();
      if (op_class(kind) != OpClass::kCompletion && operation_.peer != kNoPeer) key("peer", peer_text());
      return;
    }
    if (names_peer) write_peer();
    write_group();
    write_type();
    if (!names_peer && operation_.peer != kNoPeer) key(has_root(kind) ? "root" : "peer", peer_text());
  }

  /// The text goes to the end of the line, with its spaces and without keys.
  void write_computation(std::string_view label) {
    if (label.empty()) return;
    const bool is_plain = label.front() != ' ' && label.back() != ' ' &&
                          std::ranges::all_of(label, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '%'; });
    text_ += ' ' + (is_plain ? std::string(label) : escape_word(label, ""));
  }

  std::string peer_text() const {
    if (operation_.peer == kAnyPeer) return "any";
    return operation_.peer < 0 ? "?" : std::to_string(operation_.peer);
  }
  void write_peer() { text_ += ' ' + peer_text(); }
  void write_group() {
    text_ += ' ';
    text_ += operation_.comm == kNoComm ? "?" : bare_word(names_[to_size(operation_.comm)]);
  }

  void write_type() {
    const std::string_view type = job_.datatype(operation_.datatype);
    if (operation_.count.is_none()) {
      if (type.empty()) return;
      text_ += ' ' + bare_word(type);
      if (datatype_from_native_name(type).empty()) text_ += "[]";
      return;
    }
    std::string count = job_.count_text(operation_.count);
    if (operation_.count.is_symbol()) {
      const bool looks_like_number = count.find_first_not_of("-0123456789.") == std::string::npos;
      count = looks_like_number ? fmt::format("%{:02X}{}", static_cast<unsigned char>(count[0]), count.substr(1))
                                : escape_word(count, "[];");
    }
    text_ += fmt::format(" {}[{}]", bare_word(type), count);
  }

  /// Of a call whose first word without a key is a handle.
  void write_type_as_keys() {
    if (const std::string_view type = job_.datatype(operation_.datatype); !type.empty()) key("dtype", word(type));
    if (!operation_.count.is_none()) key("count", word(job_.count_text(operation_.count)));
  }

  void write_keys() {
    const OperationExtra& extra = job_.extra(operation_);
    if (operation_.payload != StringIndex{}) key("payload", word(job_.text(operation_.payload)));
    if (operation_.redop != RedopIndex{}) key("redop", word(job_.redop(operation_.redop)));
    if (operation_.tag == kAnyTag) key("tag", "any");
    if (operation_.tag < kAnyTag) key("tag", std::to_string(operation_.tag));
    if (operation_.stream != StringIndex{}) key("stream", word(job_.text(operation_.stream)));
    if (operation_.handle != StringIndex{}) key("handle", word(job_.text(operation_.handle)));
    if (operation_.state != OpState::kUnknown) key("state", op_state_name(operation_.state));
    if (const std::string flags = flag_names(); !flags.empty()) key("flags", flags);
    if (!extra.counts.empty()) key("counts", fmt::format("{}", fmt::join(extra.counts, ",")));
    if (!extra.recv_counts.empty()) key("recv_counts", fmt::format("{}", fmt::join(extra.recv_counts, ",")));
    if (!extra.members.empty()) key("members", fmt::format("{}", fmt::join(extra.members, ",")));
    if (!extra.color.empty()) key("color", word(extra.color));
    if (!extra.key.empty()) key("key", word(extra.key));
    if (!extra.thread.empty()) key("thread", word(extra.thread));
    if (!extra.label.empty()) key("label", word(extra.label));
    if (!extra.native_name.empty()) key("native", word(extra.native_name));
    if (extra.native_seq) key("native_seq", std::to_string(*extra.native_seq));
    if (extra.at) key("at", fmt::format("{}", *extra.at));
    if (operation_.site != SiteIndex{}) key("site", site_text(job_.site(operation_.site)));
  }

  void key(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text_), " {}={}", name, value);
  }

  std::string flag_names() const {
    const bool is_issued = op_class(operation_.kind) != OpClass::kCompletion && operation_.kind != OpKind::kGraphLaunch;
    const bool implied = is_immediate(operation_.kind) || (is_issued && (operation_.handle != StringIndex{} ||
                                                                         operation_.stream != StringIndex{}));
    std::string names;
    const auto add = [&names](bool is_set, std::string_view name) {
      if (!is_set) return;
      if (!names.empty()) names += ',';
      names += name;
    };
    add(operation_.nonblocking() && !implied, "nonblocking");
    add(!operation_.nonblocking() && implied, "blocking");
    add((operation_.flags & kOpCaptured) != 0, "captured");
    add((operation_.flags & kOpThreadUnsafe) != 0, "thread_unsafe");
    add((operation_.flags & kOpFailed) != 0, "failed");
    add((operation_.flags & kOpPersistent) != 0, "persistent");
    add((operation_.flags & kOpGap) != 0, "gap");
    add((operation_.flags & kOpHeld) != 0, "held");
    return names;
  }

  const Job& job_;
  const std::vector<std::string>& names_;
  const Operation& operation_;
  std::string& text_;
};

}  // namespace

std::vector<std::string> unique_group_names(const Job& job) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  for (const Communicator& communicator : job.communicators()) {
    std::string base = communicator.name.empty() ? communicator.id : communicator.name;
    if (base.empty()) base = "unnamed";  // a line has to name it
    std::string name = base;
    for (int number = 2; !taken.insert(name).second; ++number) name = fmt::format("{}~{}", base, number);
    names.push_back(std::move(name));
  }
  return names;
}

void append_operation(const Job& job, const std::vector<std::string>& group_names, const Operation& operation,
                      std::string& text) {
  LineWriter(job, group_names, operation, text).write();
}

}  // namespace lockstep
