// See the header.
#include "read/trace_calls.h"

#include <algorithm>

namespace lockstep {

bool read_extensions(const TraceBytes& bytes, const RingBlock& block, std::uint64_t at, std::uint8_t count,
                     CallExtensions& extensions) {
  for (std::uint8_t i = 0; i < count; ++i) {
    at += trace::kRecordBytes;
    if (at >= block.end) return false;
    const auto any = bytes.get<trace::NameRecord>(at);  // kind and commit lie at one place in all
    if (any.commit != static_cast<std::uint32_t>(block.number) || any.kind < trace::kFirstExtensionKind) return false;
    switch (static_cast<trace::RecordKind>(any.kind)) {
      case trace::RecordKind::kSecondHalf:
        extensions.half = bytes.get<trace::SecondHalfRecord>(at);
        extensions.has_half = true;
        break;
      case trace::RecordKind::kRequests: {
        const auto requests = bytes.get<trace::RequestsRecord>(at);
        const std::size_t used = std::min<std::size_t>(requests.used, std::size(requests.ids));
        extensions.requests.insert(extensions.requests.end(), requests.ids, requests.ids + used);
        break;
      }
      case trace::RecordKind::kCounts: {
        const auto counts = bytes.get<trace::CountsRecord>(at);
        if (counts.side > 1) break;
        extensions.counts[counts.side] = counts;
        extensions.has_counts[counts.side] = true;
        break;
      }
      case trace::RecordKind::kCreation:
        extensions.creation = bytes.get<trace::CreationRecord>(at);
        extensions.has_creation = true;
        break;
      case trace::RecordKind::kName:
        extensions.name.assign(any.name, std::find(any.name, any.name + sizeof any.name, '\0'));
        break;
      case trace::RecordKind::kIssue:
        extensions.issue = bytes.get<trace::IssueRecord>(at);
        extensions.has_issue = true;
        break;
      case trace::RecordKind::kBlock:
        break;
    }
  }
  return true;
}

}  // namespace lockstep
