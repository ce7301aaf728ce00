#include "plan/schedule/timeline.h"

#include <fmt/format.h>

#include <unordered_map>

namespace lockstep::plan {

std::int32_t stage_of(Placement placement, std::int32_t ranks, std::int32_t rank, std::int32_t chunk) {
  switch (placement) {
    case Placement::kLoop:
      return chunk * ranks + rank;
    case Placement::kVee:
      return chunk % 2 == 0 ? chunk * ranks + rank : chunk * ranks + ranks - 1 - rank;
    case Placement::kTwoWay:
      return chunk == 0 ? rank : ranks - 1 - rank;
    case Placement::kExplicit:
      return chunk;
  }
  return chunk;
}

namespace {

struct Link {
  std::vector<Payload> sent{};
  std::size_t taken = 0;
};

/// Pipelines talk along few links, so one key of group, sender and receiver does.
std::uint64_t link_key(bool world, std::int32_t source, std::int32_t destination) {
  return (static_cast<std::uint64_t>(world) << 62) | (static_cast<std::uint64_t>(source) << 31) |
         static_cast<std::uint64_t>(destination);
}

}  // namespace

std::vector<std::vector<Payload>> received_payloads(const Timeline& timeline) {
  std::unordered_map<std::uint64_t, Link> links;
  for (std::int32_t rank = 0; rank < timeline.size(); ++rank) {
    for (const Message& message : timeline.ranks[static_cast<std::size_t>(rank)].messages) {
      if (message.send) links[link_key(message.world, rank, message.peer)].sent.push_back(message.payload);
    }
  }
  std::vector<std::vector<Payload>> received;
  received.reserve(timeline.ranks.size());
  for (std::int32_t rank = 0; rank < timeline.size(); ++rank) {
    std::vector<Payload>& row = received.emplace_back();
    for (const Message& message : timeline.ranks[static_cast<std::size_t>(rank)].messages) {
      row.push_back(message.payload);
      if (message.send) continue;
      Link& link = links[link_key(message.world, message.peer, rank)];
      if (link.taken < link.sent.size()) row.back() = link.sent[link.taken++];
    }
  }
  return received;
}

std::string payload_text(const Payload& payload) {
  switch (payload.carries) {
    case Carries::kActivation:
      return fmt::format("act:{}.{}", payload.chunk, payload.micro_batch);
    case Carries::kGradient:
      return fmt::format("grad:{}.{}", payload.chunk, payload.micro_batch);
    case Carries::kShape:
      return "shape";
    case Carries::kToken:
      return "token";
  }
  return {};
}

}  // namespace lockstep::plan
