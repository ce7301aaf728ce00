// From the entries of a Flight Recorder dump, one at a time, to operations.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/flight_dump.h"
#include "read/plain_values.h"

namespace lockstep {

/// Fills the operations of a dump. Coalesced groups are put together: messages of one group get one launch and the state of its
/// end; collectives of one group become one call, for they have one number.
class FlightEntries final : public RecordSink {
 public:
  explicit FlightEntries(FlightDump& dump) : dump_(dump) {}
  void record(std::span<const PlainValue> fields, const PlainValues& values) override;
  /// After the last entry: version, pg_config, pg_status.
  void finish(const std::vector<std::pair<std::string_view, PlainValue>>& fields, const PlainValues& values);

 private:
  struct Fields;
  struct Name {
    OpKind kind = OpKind::kUnknown;
    bool ends_group = false;
    bool retires_when_done = false;         ///< FlightDump::retires_when_done
    std::int32_t self = -1, peer = -1;  ///< group ranks of a message
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  static Fields fields_of(std::span<const PlainValue> fields);
  const Name& name_of(std::string_view text);
  std::uint32_t group_of(const PlainValue& tuple, const PlainValues& values);
  std::uint32_t group_named(std::string_view name);
  SiteIndex site_of(const PlainValue& frames, const PlainValues& values);
  DatatypeIndex datatype_of(const PlainValue& types, const PlainValues& values);
  void end_group(const Fields& fields, const Name& name, std::uint32_t group, OpState state);
  void fold_or_add(const Operation& operation, const FlightCall& call, bool is_message);
  void read_config(const PlainValue& config, const PlainValues& values);
  void read_status(const PlainValue& status, const PlainValues& values);

  FlightDump& dump_;
  std::unordered_map<std::string, Name, TextHash, std::equal_to<>> names_;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> groups_;
  std::unordered_map<std::uint64_t, SiteIndex> sites_by_nodes_;
  std::unordered_map<std::string, SiteIndex, TextHash, std::equal_to<>> sites_by_text_;
  std::vector<std::int64_t> last_op_of_group_;  // op_id
  std::vector<std::pair<std::uint32_t, std::uint32_t>> last_of_group_;  // by group: index of its last operation + 1, launch
  std::uint32_t launches_ = 0;
  std::int64_t last_record_ = -1;
};

}  // namespace lockstep
