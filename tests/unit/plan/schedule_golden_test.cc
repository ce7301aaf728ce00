// Every schedule that was recorded from the frameworks themselves, expanded from its parameters alone.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/schedule/schedule_query.h"
#include "unit/read/read_testing.h"

namespace lockstep::plan {
namespace {

using Json = nlohmann::json;

Json golden(const std::string& name) {
  std::ifstream file(shared_directory() + "/golden/" + name);
  return Json::parse(file, nullptr, false);
}

/// The element without what only says how it was checked.
Json without_checks(Json element) {
  for (const char* key :
       {"pairing", "payload_check", "validate_communication", "sim_steps", "sim_error", "sim_note"})
    element.erase(key);
  return element;
}

/// Parameters as an element states them, whatever its file calls them.
ScheduleQuery query_of(ScheduleFramework framework, const Json& element) {
  ScheduleQuery query{.framework = framework};
  const auto number = [&](const char* key, auto& into) {
    if (element.contains(key) && element[key].is_number()) into = element[key].get<std::int64_t>();
  };
  query.name = element.value("schedule", "");
  for (const char* key : {"pp", "stages"}) number(key, query.stages);
  for (const char* key : {"vp", "virtual", "chunks"}) number(key, query.virtual_stages);
  for (const char* key : {"microbatches", "micro_batches", "num_chunks"}) number(key, query.micro_batches);
  query.forward_only = element.value("forward_only", false);
  if (element.contains("post_validation")) query.post_validation = element["post_validation"].get<bool>();
  const Json config = element.value("config", Json::object());
  const auto option = [&config](const char* key, std::optional<bool>& into) {
    if (config.contains(key)) into = config[key].get<bool>();
  };
  option("batch_p2p_comm", query.batch_p2p_comm);
  option("overlap_p2p_comm", query.overlap_p2p_comm);
  option("overlap_p2p_comm_warmup_flush", query.overlap_p2p_comm_warmup_flush);
  option("variable_seq_lengths", query.variable_seq_lengths);
  if (config.contains("group"))
    query.group = config["group"].is_string() ? config["group"].get<std::string>() : config["group"].dump();
  return query;
}

void expect_element(const ScheduleQuery& query, const Json& element) {
  SCOPED_TRACE(element.value("schedule", query.name) + " " + std::to_string(query.stages) + " " +
               std::to_string(query.virtual_stages.value_or(0)) + " " + std::to_string(query.micro_batches) +
               element.value("config", Json()).dump());
  const Result<std::string> text = schedule_json(query);
  ASSERT_TRUE(text) << text.error().message;
  const Json got = Json::parse(*text);
  const Json want = without_checks(element);
  if (got == want) return;
  // The whole is too long to read.
  const Json difference = Json::diff(want, got);
  ADD_FAILURE() << difference.size() << " differences: " << difference.dump().substr(0, 600);
}

void expect_file(const std::string& file, ScheduleFramework framework) {
  if (shared_directory().empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  const Json json = golden(file);
  ASSERT_TRUE(json.is_object());
  ASSERT_FALSE(json["cases"].empty());
  for (const Json& element : json["cases"]) {
    ScheduleQuery query = query_of(framework, element);
    if (query.name.ends_with(".csv")) {
      // Of an order that came from a file the file holds the rows.
      query.csv_path = query.name;
      for (const Json& row : element["compute_only"]) query.csv += row.get<std::string>() + "\r\n";
    }
    expect_element(query, element);
  }
}

TEST(ScheduleGoldens, Megatron) { expect_file("megatron_schedules.json", ScheduleFramework::kMegatron); }
TEST(ScheduleGoldens, Torch) { expect_file("pytorch_pipelining.json", ScheduleFramework::kTorch); }
TEST(ScheduleGoldens, TorchRuntime) {
  expect_file("pytorch_runtime_1f1b_gpipe.json", ScheduleFramework::kTorchRuntime);
}
TEST(ScheduleGoldens, ZeroBubble) { expect_file("zero_bubble.json", ScheduleFramework::kZeroBubble); }
TEST(ScheduleGoldens, DualPipe) { expect_file("dualpipe.json", ScheduleFramework::kDualPipe); }

TEST(ScheduleGoldens, DeepSpeed) {
  if (shared_directory().empty()) GTEST_SKIP() << "no shared inputs; set LOCKSTEP_SHARED";
  for (const bool old : {true, false}) {
    const Json json = golden(old ? "deepspeed/schedules.json" : "deepspeed/schedules_master_2025_02.json");
    for (const auto& [list, name] :
         {std::pair("TrainSchedule", "train"), std::pair("InferenceSchedule", "inference")}) {
      ASSERT_FALSE(json[list].empty());
      for (const Json& element : json[list]) {
        ScheduleQuery query = query_of(ScheduleFramework::kDeepSpeed, element);
        query.name = name;
        query.old_version = old;
        expect_element(query, element);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::plan
