// Writes Flight Recorder dumps as torch's pickler does: protocol 2, text and shared frames as memos, one list of entries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::testing {

struct FlightEntry {
  std::string group = "0", description = "default_pg", name = "nccl:all_reduce";
  std::int64_t pg_id = 0, collective_seq = 1, message_seq = 0;
  std::vector<std::int64_t> sizes{1024, 128};
  std::string datatype = "Float", state = "completed";
  bool is_message = false, retired = true;
  std::int64_t created_ns = 1'760'000'000'000'000'000;
  std::vector<std::size_t> frames{};  ///< numbers of frames; equal numbers are one dictionary
};

class FlightWriter {
 public:
  explicit FlightWriter(std::string version = "2.9");
  /// Groups first: name, description, members.
  void group(const std::string& name, const std::string& description, const std::vector<std::int32_t>& members);
  void entry(const FlightEntry& entry);
  std::string finish();
  std::int64_t next_record = 0;

 private:
  void text(const std::string& value);
  void integer(std::int64_t value);
  void sizes(const std::vector<std::int64_t>& value);
  void frame(std::size_t number);
  void put();
  void begin_entries();

  std::string out_;
  std::map<std::string, std::uint32_t> memo_;
  std::map<std::size_t, std::uint32_t> frames_;
  std::uint32_t next_memo_ = 0;
  bool in_entries_ = false;
};

}  // namespace lockstep::testing
