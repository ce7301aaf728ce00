// See the header.
#include "support/flight_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep::testing {
namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

}  // namespace

FlightWriter::FlightWriter(std::string version) {
  out_ = "\x80\x02}(";
  text("version");
  text(version);
  text("pg_config");
  out_ += "}(";
}

void FlightWriter::put() {
  out_ += next_memo_ < 256 ? "q" + little(next_memo_, 1) : "r" + little(next_memo_, 4);
  ++next_memo_;
}

void FlightWriter::text(const std::string& value) {
  if (const auto known = memo_.find(value); known != memo_.end()) {
    out_ += known->second < 256 ? "h" + little(known->second, 1) : "j" + little(known->second, 4);
    return;
  }
  out_ += "X" + little(value.size(), 4) + value;
  memo_[value] = next_memo_;
  put();
}

void FlightWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) out_ += "K" + little(static_cast<std::uint64_t>(value), 1);
  else if (value >= 0 && value < 65536) out_ += "M" + little(static_cast<std::uint64_t>(value), 2);
  else if (value >= -2147483648LL && value <= 2147483647LL) out_ += "J" + little(static_cast<std::uint64_t>(value), 4);
  else out_ += "\x8a\x08" + little(static_cast<std::uint64_t>(value), 8);
}

void FlightWriter::sizes(const std::vector<std::int64_t>& value) {
  out_ += "](](";
  for (const std::int64_t size : value) integer(size);
  out_ += "ee";
}

void FlightWriter::frame(std::size_t number) {
  if (const auto known = frames_.find(number); known != frames_.end()) {
    out_ += known->second < 256 ? "h" + little(known->second, 1) : "j" + little(known->second, 4);
    return;
  }
  out_ += "}";
  frames_[number] = next_memo_;
  put();
  out_ += "(";
  text("name");
  text(fmt::format("function_{}", number));
  text("filename");
  text(fmt::format("/workspace/train/module_{}.py", number % 40));
  text("line");
  integer(static_cast<std::int64_t>(100 + number));
  out_ += "u";
}

void FlightWriter::group(const std::string& name, const std::string& description, const std::vector<std::int32_t>& members) {
  text(name);
  out_ += "}(";
  text("name");
  text(name);
  text("desc");
  text(description);
  text("ranks");
  text(fmt::format("[{}]", fmt::join(members, ", ")));
  out_ += "u";
}

void FlightWriter::begin_entries() {
  out_ += "u";
  text("entries");
  out_ += "](";
  in_entries_ = true;
}

void FlightWriter::entry(const FlightEntry& entry) {
  if (!in_entries_) begin_entries();
  out_ += "}(";
  text("record_id");
  integer(next_record++);
  text("pg_id");
  integer(entry.pg_id);
  text("process_group");
  text(entry.group);
  text(entry.description);
  out_ += "\x86";
  text("thread_name");
  text("python3");
  text("thread_id");
  text("139820112");
  text("collective_seq_id");
  integer(entry.collective_seq);
  text("p2p_seq_id");
  integer(entry.message_seq);
  text("op_id");
  integer(entry.collective_seq + entry.message_seq);
  text("profiling_name");
  text(entry.name);
  text("time_created_ns");
  integer(entry.created_ns);
  text("input_sizes");
  sizes(entry.sizes);
  text("input_dtypes");
  out_ += "](";
  text(entry.datatype);
  out_ += "e";
  text("output_sizes");
  sizes(entry.sizes);
  text("output_dtypes");
  out_ += "](";
  text(entry.datatype);
  out_ += "e";
  text("state");
  text(entry.state);
  text("time_discovered_started_ns");
  out_ += "N";
  text("time_discovered_completed_ns");
  out_ += "N";
  text("retired");
  out_ += entry.retired ? "\x88" : "\x89";
  text("timeout_ms");
  integer(600000);
  text("is_p2p");
  out_ += entry.is_message ? "\x88" : "\x89";
  if (!entry.frames.empty()) {
    text("frames");
    out_ += "](";
    for (const std::size_t number : entry.frames) frame(number);
    out_ += "e";
  }
  out_ += "u";
}

std::string FlightWriter::finish() {
  if (!in_entries_) begin_entries();
  out_ += "eu.";
  return std::move(out_);
}

}  // namespace lockstep::testing
