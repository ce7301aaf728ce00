// The recorded DeepSpeed runs around the founding hang, and the same runs with every name and rank changed: the report must
// follow the evidence, not the words.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "diagnose/diagnose.h"
#include "read/load.h"
#include "unit/read/read_testing.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

struct Case {
  Json index;
  std::map<std::string, std::vector<Json>> calls_by_rank;  // records in order
};

std::map<std::string, Case> load_cases(const std::string& shared) {
  const std::string traces = shared + "/traces/deepspeed_1522";
  std::map<std::string, Case> cases;
  std::ifstream index_file(traces + "/INDEX.json");
  const Json index = Json::parse(index_file);
  for (const auto& [name, entry] : index.items()) {
    Case& added = cases[name];
    added.index = entry;
    for (const auto& [rank, unused] : entry["ranks"].items()) {
      std::ifstream file(traces + "/" + name + ".rank" + rank + ".jsonl");
      for (std::string line; std::getline(file, line);) added.calls_by_rank[rank].push_back(Json::parse(line));
    }
  }
  return cases;
}

/// New words for the old, the same ones each time.
class Renamer {
 public:
  explicit Renamer(int ranks) : ranks_(ranks) {}
  int rank(int old) const { return ranks_ - 1 - old; }
  std::string group(const std::string& old) { return old == "WORLD" ? old : fresh("team", old); }
  /// "file:function:line": other file, function and line.
  std::string site(const std::string& old) {
    const std::size_t line = old.rfind(':');
    const std::size_t function = old.rfind(':', line - 1);
    return fresh("mod", old.substr(0, function)) + ".py:" + fresh("fn", old.substr(function + 1, line - function - 1)) + ":" +
           std::to_string(std::stoi(old.substr(line + 1)) + 7000);
  }
  std::string function(const std::string& old) { return fresh("fn", old); }

 private:
  std::string fresh(const std::string& prefix, const std::string& old) {
    const auto [at, added] = names_.try_emplace(prefix + '\n' + old, "");
    if (added) at->second = prefix + std::to_string(names_.size());
    return at->second;
  }
  int ranks_;
  std::map<std::string, std::string> names_;
};

Json renamed(Json call, Renamer& names) {
  for (const char* key : {"rank", "root", "peer"}) {
    if (call.contains(key)) call[key] = names.rank(call[key].get<int>());
  }
  std::vector<int> ranks;
  for (const int rank : call["ranks"]) ranks.push_back(names.rank(rank));
  std::ranges::sort(ranks);
  call["ranks"] = ranks;
  if (call.contains("group")) call["group"] = names.group(call["group"]);
  call["site"] = names.site(call["site"]);
  for (Json& frame : call["stack"]) frame = names.site(frame);
  call["phase"] = "phase";
  return call;
}

Report check_calls(const std::vector<std::vector<Json>>& ranks) {
  const TempDir dir;
  std::vector<std::string> paths;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::string text;
    for (const Json& call : ranks[r]) text += call.dump() + '\n';
    paths.push_back(dir.write("rank" + std::to_string(r), text));
  }
  const auto job = load_job(paths);
  EXPECT_TRUE(job);
  return diagnose(*job);
}

/// What a hang must be told as: `name` maps the words of INDEX.json to those of the input.
template <class Group, class Function, class Rank>
void expect_told(const Report& report, const Json& index, Group group, Function function, Rank rank) {
  ASSERT_EQ(verdict_name(report.verdict), "deadlock");
  const Finding& finding = report.findings.front();
  EXPECT_EQ(finding.finding_class, "count_differs_by_local_state");
  EXPECT_EQ(finding.communicator->ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(finding.divergent_ranks, (std::vector<std::int32_t>{0, 1}));
  ASSERT_EQ(finding.wait_for.size(), 2U);
  for (const WaitFor& wait : finding.wait_for) {
    const Json& blocked = index["ranks"][std::to_string(rank(wait.rank))]["blocked_in"];
    EXPECT_EQ(wait.operation.op, blocked["op"].get<std::string>());
    EXPECT_EQ(wait.operation.communicator, group(blocked["group"].get<std::string>()));
    const std::string site = blocked["site"];
    const std::size_t line = site.rfind(':');
    const std::size_t name = site.rfind(':', line - 1);
    EXPECT_EQ(wait.operation.site.front().function, function(site.substr(name + 1, line - name - 1)));
  }
  EXPECT_EQ(finding.communicator->name, group("G2"));
  const auto& counts = finding.counts.front().by_rank;
  EXPECT_EQ(counts.at(rank(0)), counts.at(rank(1)) + 1);
}

TEST(DeepSpeedCases, GetTheOutcomeOfTheirRun) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  for (const auto& [name, recorded] : load_cases(shared)) {
    SCOPED_TRACE(name);
    std::vector<std::vector<Json>> ranks;
    for (const auto& [rank, calls] : recorded.calls_by_rank) ranks.push_back(calls);
    const Report report = check_calls(ranks);
    if (recorded.index["outcome"] != "hang") {
      EXPECT_EQ(verdict_name(report.verdict), "consistent");
      EXPECT_TRUE(report.findings.empty());
      continue;
    }
    const auto same = [](const auto& value) { return value; };
    expect_told(report, recorded.index, same, same, same);
    if (name == "b_type_embed") {
      EXPECT_EQ(report.findings.front().counts.front().by_rank, (std::map<std::int32_t, std::uint64_t>{{0, 4}, {1, 3}}));
      EXPECT_NE(report.findings.front().explanation.find("get_grad_norm_direct"), std::string::npos);
    }
  }
}

TEST(DeepSpeedCases, AreToldAlikeWhenEveryNameAndRankIsChanged) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  for (const auto& [name, recorded] : load_cases(shared)) {
    SCOPED_TRACE(name);
    Renamer names(static_cast<int>(recorded.calls_by_rank.size()));
    std::vector<std::vector<Json>> ranks;
    for (const auto& [rank, calls] : recorded.calls_by_rank) {
      auto& twin = ranks.emplace_back();
      for (const Json& call : calls) twin.push_back(renamed(call, names));
    }
    const Report report = check_calls(ranks);
    if (recorded.index["outcome"] != "hang") {
      EXPECT_EQ(verdict_name(report.verdict), "consistent");
      continue;
    }
    expect_told(
        report, recorded.index, [&](const std::string& old) { return names.group(old); },
        [&](const std::string& old) { return names.function(old); }, [&](int rank) { return names.rank(rank); });
    const std::string& told = report.findings.front().explanation;
    for (const char* word : {"deepspeed", "grad", "embed", "optimizer", "stage", "G2"}) {
      EXPECT_EQ(told.find(word), std::string::npos) << told;
    }
  }
}

/// The founding hang with two data-parallel replicas: ranks 0,1 are the first stage, 2,3 the second.
std::vector<std::vector<Json>> with_two_replicas(const Case& recorded) {
  std::vector<std::vector<Json>> ranks;
  for (const int stage : {0, 1}) {
    for (const int replica : {0, 1}) {
      auto& twin = ranks.emplace_back();
      for (const Json& call : recorded.calls_by_rank.at(std::to_string(stage))) {
        const bool across = call["ranks"].size() == 2;
        const auto add = [&](int of_replica) {
          Json copy = call;
          copy["rank"] = 2 * stage + replica;
          if (across && call["group"] == "WORLD") {
            copy["ranks"] = std::vector<int>{0, 1, 2, 3};
            if (call.contains("peer")) copy["peer"] = 2 * call["peer"].get<int>() + replica;
          } else if (across) {
            copy["ranks"] = std::vector<int>{of_replica, 2 + of_replica};
            copy["group"] = call["group"].get<std::string>() + (of_replica == 0 ? "a" : "b");
            if (call.contains("root")) copy["root"] = 2 * call["root"].get<int>() + of_replica;
          } else {
            const int first = 2 * call["ranks"][0].get<int>();
            copy["ranks"] = std::vector<int>{first, first + 1};
            if (call.contains("root")) copy["root"] = first;
          }
          copy["seq"] = twin.size() + 1;
          twin.push_back(copy);
        };
        const bool creates = call["op"] == "new_group";
        if (creates && across) {
          add(0);
          add(1);
        } else {
          add(replica);
        }
      }
    }
  }
  return ranks;
}

TEST(DeepSpeedCases, AreOneFindingForAllReplicas) {
  const std::string shared = shared_directory();
  if (shared.empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  const Report report = check_calls(with_two_replicas(load_cases(shared).at("b_type_embed")));
  ASSERT_EQ(report.verdict, Verdict::kDeadlock);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].finding_class, "count_differs_by_local_state");
  EXPECT_EQ(report.findings[0].divergent_ranks, (std::vector<std::int32_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace lockstep
