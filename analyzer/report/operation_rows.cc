// The rows of a text report that say which rank stands in which call.
#include "report/operation_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/rank_ranges.h"
#include "diagnose/site_words.h"
#include "lockstep/op_kind.h"
#include "report/columns.h"
#include "report/printable.h"

namespace lockstep {
namespace {

constexpr std::size_t kManyRows = 8;
constexpr std::size_t kRankWidth = 30;
constexpr std::size_t kNameWidth = 32;
constexpr std::size_t kMembersWidth = 26;
constexpr std::size_t kWaitsWidth = 40;
constexpr std::size_t kSiteColumn = 5;

/// One call of one or several ranks.
struct Row {
  std::vector<std::int32_t> ranks{};
  const OperationView* operation = nullptr;  ///< that of the first rank
  std::vector<std::int32_t> waits_for{};
  std::string why{};
  bool is_wait = false;                   ///< from `wait_for`: it says whom it waits for
  std::set<std::size_t> communicators{};  ///< numbers of the different member lists it stands for
  bool peers_differ = false;
};

/// Numbers lists of ranks, so that thousands of rows are compared by number.
class ListNumbers {
 public:
  std::size_t of(const std::vector<std::int32_t>& ranks) {
    return numbers_.try_emplace(ranks, numbers_.size()).first->second;
  }

 private:
  std::map<std::vector<std::int32_t>, std::size_t> numbers_;
};

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string operation_text(const OperationView& operation, bool peers_differ) {
  std::string text = printable(operation.op);
  const auto kind = op_kind_from_name(operation.op);
  if (!kind || !is_point_to_point(*kind) || !operation.peer || peers_differ) return text;
  const std::string peer = *operation.peer == kAnyPeer ? "any" : fmt::format("{}", *operation.peer);
  return text + (is_receive(*kind) ? " from " : " to ") + peer;
}

std::string position_text(const OperationView& operation) {
  std::string text = operation.seq ? fmt::format("#{} ", *operation.seq) : "";
  if (!operation.communicator.empty()) text += "on " + printable(operation.communicator);
  return cut_to_width(text, kNameWidth);
}

std::string members_text(const Row& row) {
  if (row.communicators.size() > 1) return fmt::format("({} of that name)", row.communicators.size());
  const auto& members = row.operation->members;
  return members.empty() ? "" : '[' + rank_ranges(members, kMembersWidth - 2) + ']';
}

// What is said of one rank, of several: "makes no further call" - "make no further call".
std::string said_of_many(std::string why) {
  constexpr std::pair<std::string_view, std::string_view> kVerbs[] = {{"makes ", "make "}, {"is ", "are "}, {"was ", "were "}, {"has ", "have "}};
  for (const auto& [one, many] : kVerbs) {
    if (why.starts_with(one)) why.replace(0, one.size(), many);
  }
  if (why == "its record is cut") return "their records are cut";
  if (const std::size_t it = why.find("became of it is"); it != std::string::npos) why.replace(it + 10, 2, "them");
  return why;
}

std::string waits_text(const Row& row) {
  if (!row.is_wait) return "";
  if (!row.why.empty()) return printable(row.ranks.size() == 1 ? row.why : said_of_many(row.why));
  if (row.waits_for.empty()) return "";  // it stands in a call that its partners do not match
  std::vector<std::int32_t> others;
  std::ranges::set_difference(row.waits_for, row.ranks, std::back_inserter(others));
  const std::string_view verb = row.ranks.size() == 1 ? "waits for " : "wait for ";
  if (others.empty()) return row.ranks.size() == 1 ? "waits for itself" : "wait for each other";
  return fmt::format("{}{}", verb, named_ranks(others, kWaitsWidth - verb.size()));
}

std::string view_site_text(const OperationView& operation) {
  const std::string text = torch_site_text(operation.site, operation.op);
  if (text.empty()) return site_text(operation.site, operation.label);
  return printable(text) + (operation.label.empty() ? "" : ", " + printable(operation.label));
}

// The fullest form of a call site that fits; the innermost function and its caller go last.
std::string fitting_site_text(const OperationView& operation, std::size_t room) {
  std::string text = view_site_text(operation);
  if (display_width(text) <= room || operation.site.empty()) return text;
  if (std::string shorter = short_torch_site_text(operation.site, operation.op); !shorter.empty()) return printable(shorter);
  text = site_text(operation.site, "");
  if (display_width(text) <= room || operation.site.size() == 1) return text;
  std::vector<Frame> functions = operation.site;
  functions[0].file.clear();
  text = site_text(functions, "");
  return display_width(text) <= room ? text : site_text({operation.site[0]}, "");
}

std::vector<Row> all_rows(const Finding& finding, ListNumbers& numbers) {
  std::vector<Row> rows;
  rows.reserve(finding.wait_for.size() + finding.operations.size());
  for (const WaitFor& wait : finding.wait_for)
    rows.push_back({{wait.rank},
                    &wait.operation,
                    wait.waits_for,
                    wait.why,
                    true,
                    {numbers.of(wait.operation.members)},
                    false});
  const auto shown = [&](const OperationView& side) {
    return std::ranges::any_of(finding.wait_for, [&](const WaitFor& wait) {
      const OperationView& operation = wait.operation;
      return std::tie(operation.rank, operation.op, operation.communicator, operation.seq) ==
             std::tie(side.rank, side.op, side.communicator, side.seq);
    });
  };
  for (const OperationView& side : finding.operations)
    if (!shown(side)) rows.push_back({{side.rank}, &side, {}, "", false, {numbers.of(side.members)}, false});
  return rows;
}

// Arguments are shown where they are the matter: two calls at one position that differ in nothing else.
bool arguments_matter(const std::vector<Row>& rows) {
  std::map<std::tuple<std::string, std::optional<std::uint32_t>, std::string>, std::string> seen;
  return std::ranges::any_of(rows, [&](const Row& row) {
    const OperationView& operation = *row.operation;
    const auto [entry, is_new] = seen.try_emplace(
        std::tuple{operation.communicator, operation.seq, operation.op}, arguments_text(operation));
    return !is_new && entry->second != arguments_text(operation);
  });
}

// What rows must have in common to become one; `closely`: also members, peer and whom they wait for.
std::string merge_key(const Row& row, bool closely, ListNumbers& numbers) {
  const OperationView& operation = *row.operation;
  std::string key =
      fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", row.is_wait, operation.op,
                  operation.communicator, operation.seq.value_or(0), operation.seq.has_value(),
                  arguments_text(operation), view_site_text(operation), row.why);
  if (!closely) return key;
  key += fmt::format("\x1f{}\x1f{}\x1f{}", fmt::join(row.communicators, " "), numbers.of(row.waits_for),
                     operation.peer.value_or(kNoPeer));
  return key;
}

std::vector<Row> merged(std::vector<Row> rows, bool closely, ListNumbers& numbers) {
  std::vector<Row> result;
  std::unordered_map<std::string, std::size_t> row_of_key;
  for (Row& row : rows) {
    const auto [entry, is_new] = row_of_key.try_emplace(merge_key(row, closely, numbers), result.size());
    if (is_new) {
      result.push_back(std::move(row));
      continue;
    }
    Row& into = result[entry->second];
    into.peers_differ = into.peers_differ || into.operation->peer != row.operation->peer || row.peers_differ;
    into.ranks.insert(into.ranks.end(), row.ranks.begin(), row.ranks.end());
    into.communicators.merge(row.communicators);
    if (!closely) into.waits_for.insert(into.waits_for.end(), row.waits_for.begin(), row.waits_for.end());
  }
  for (Row& row : result) {
    std::ranges::sort(row.ranks);
    std::ranges::sort(row.waits_for);
    row.waits_for.erase(std::ranges::unique(row.waits_for).begin(), row.waits_for.end());
  }
  return result;
}

}  // namespace

std::string site_text(const std::vector<Frame>& site, const std::string& label) {
  std::string text = printable(torch_site_text(site, ""));
  if (text.empty() && !site.empty()) {
    const Frame& frame = site.front();
    text = printable(frame.function);
    if (!frame.file.empty()) {
      if (!text.empty()) text += ' ';
      text += printable(base_name(frame.file));
      if (frame.line != 0) text += fmt::format(":{}", frame.line);
    }
    if (site.size() > 1 && !site[1].function.empty()) text += " < " + printable(site[1].function);
  }
  if (!label.empty()) text += (text.empty() ? "" : ", ") + printable(label);
  return text;
}

std::string arguments_text(const OperationView& operation) {
  std::string text = operation.datatype;
  if (!operation.count.empty()) text += '[' + operation.count + ']';
  const auto append = [&text](const std::string& word) {
    if (word.empty()) return;
    if (!text.empty()) text += ' ';
    text += word;
  };
  append(operation.redop);
  const auto kind = op_kind_from_name(operation.op);
  if (operation.peer && kind && has_root(*kind)) append(fmt::format("root={}", *operation.peer));
  append(operation.payload);
  return printable(text);
}

std::vector<OperationRow> operation_rows(const Finding& finding, std::size_t width) {
  ListNumbers numbers;
  std::vector<Row> rows = all_rows(finding, numbers);
  const bool with_arguments = arguments_matter(rows);
  rows = merged(std::move(rows), true, numbers);
  if (rows.size() > kManyRows) rows = merged(std::move(rows), false, numbers);

  std::vector<Cells> table;
  for (const Row& row : rows) {
    const OperationView& operation = *row.operation;
    table.push_back({named_ranks(row.ranks, kRankWidth), operation_text(operation, row.peers_differ),
                     position_text(operation), members_text(row),
                     with_arguments ? arguments_text(operation) : "",
                     view_site_text(operation), waits_text(row)});
  }
  const std::size_t room = flexible_room(table, width, kSiteColumn);
  for (std::size_t i = 0; i < rows.size(); ++i)
    table[i][kSiteColumn] = fitting_site_text(*rows[i].operation, room);
  std::vector<std::string> lines = align_columns(table, width, kSiteColumn);
  std::size_t rank_width = 0;
  // A rank that stands in no call has nothing for the columns between: what is known of it follows at once.
  for (const Cells& cells : table) rank_width = std::max(rank_width, display_width(cells[0]));
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].operation->op.empty())
      lines[i] = cut_to_width(fmt::format("{:<{}}  {}", table[i][0], rank_width, waits_text(rows[i])), width);
  std::vector<OperationRow> result;
  for (std::size_t i = 0; i < rows.size(); ++i) result.push_back({std::move(lines[i]), rows[i].ranks.size()});
  return result;
}

}  // namespace lockstep
