// The passes of zero-bubble's scheduler that put messages into an order of computation (passes.py,
// communication.py): times, sends behind what makes them, the chain of post-validation, receives as early as
// the sender's time allows, rollback marks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>

#include "plan/schedule/python_sort.h"
#include "plan/schedule/query_parts.h"
#include "plan/schedule/zb_parts.h"

namespace lockstep::plan {
namespace {

bool is_compute(ZbType type) { return type <= ZbType::kBW; }
bool is_send(ZbType type) {
  return type == ZbType::kSendForward || type == ZbType::kSendBackward || type == ZbType::kSendPostValidation;
}

/// What identifies a node among all.
struct Key {
  ZbType type = ZbType::kF;
  std::int32_t layer = 0, micro_batch = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
Key key_of(const ZbNode& node) { return {node.type, node.layer, node.micro_batch}; }

struct Pair {
  ZbNode send{}, receive{};
  Key deadline{};         ///< what consumes it
  std::size_t place = 0;  ///< of the send among all nodes of its rank
};

class Passes {
 public:
  Passes(const ZeroBubbleQuery& query, const ZbOrder& order)
      : query_(query), layers_(query.stages * chunks(order)), rows_(order) {}

  Result<ZbOrder> run() {
    if (!set_times()) return Error{ErrorCode::kUnsupported, "RuntimeError: Cannot find next runnable node."};
    insert_sends();
    if (query_.post_validation) {
      if (const char* error = insert_post_validation()) return zb_assertion(error);
    }
    if (const auto error = insert_receives()) return zb_assertion(*error);
    if (query_.post_validation) {
      if (const char* error = mark_rollbacks()) return zb_assertion(error);
    }
    return std::move(rows_);
  }

 private:
  static std::int32_t chunks(const ZbOrder& order) {
    std::int32_t most = 0;
    for (const ZbNode& node : order[0]) most = std::max(most, node.chunk);
    return most + 1;
  }

  /// Computed nodes by key, for those before: F of the layer before, B and BW of the layer behind, the turn
  /// at the end.
  std::size_t at(ZbType type, std::int32_t layer, std::int32_t m) const {
    return (static_cast<std::size_t>(type) * static_cast<std::size_t>(layers_) +
            static_cast<std::size_t>(layer)) *
               static_cast<std::size_t>(query_.micro_batches) +
           static_cast<std::size_t>(m);
  }
  std::optional<std::size_t> before(const ZbNode& node) const {
    if (node.type == ZbType::kW) return at(ZbType::kB, node.layer, node.micro_batch);
    if (node.type == ZbType::kF) {
      return node.layer == 0 ? std::nullopt : std::optional(at(ZbType::kF, node.layer - 1, node.micro_batch));
    }
    if (node.layer + 1 == layers_) return at(ZbType::kF, node.layer, node.micro_batch);
    return at(node.type, node.layer + 1, node.micro_batch);
  }

  bool set_times() {
    computed_.assign(at(ZbType::kBW, layers_ - 1, query_.micro_batches - 1) + 1, ZbNode{.stage = -1});
    std::vector<std::size_t> next(rows_.size());
    std::vector<std::int64_t> clock(rows_.size());
    for (bool left = true; left;) {
      left = false;
      bool moved = false;
      for (std::size_t s = 0; s < rows_.size(); ++s) {
        if (next[s] == rows_[s].size()) continue;
        left = true;
        ZbNode& node = rows_[s][next[s]];
        const std::optional<std::size_t> needs = before(node);
        std::int64_t start = clock[s];
        if (needs) {
          const ZbNode& source = computed_[*needs];
          if (source.stage < 0) continue;
          start = std::max(start, source.end + (source.stage != node.stage ? kZbMessageCost : 0));
        }
        node.start = start;
        node.end = start + kZbCost;
        clock[s] = node.end;
        computed_[at(node.type, node.layer, node.micro_batch)] = node;
        ++next[s];
        moved = true;
      }
      if (left && !moved) return false;
    }
    return true;
  }

  void insert_sends() {
    std::int32_t pair = 0;
    const ZbOrder computation = rows_;
    for (const auto& row : computation) {
      for (const ZbNode& node : row) {
        if (node.type == ZbType::kW) continue;
        const std::optional<std::size_t> needs = before(node);
        if (!needs || computed_[*needs].stage == node.stage) continue;
        const ZbNode& source = computed_[*needs];
        const std::int32_t last = query_.stages - 1;
        const bool from_previous =
            source.stage + 1 == node.stage || (node.stage == 0 && source.stage == last);
        const bool forward = node.type == ZbType::kF;
        ZbNode send = source;
        send.type = forward ? ZbType::kSendForward : ZbType::kSendBackward;
        send.to_next = from_previous;
        send.peer = node.stage;
        ZbNode receive = node;
        receive.type = forward ? ZbType::kRecvForward : ZbType::kRecvBackward;
        receive.to_next = !from_previous;
        receive.peer = source.stage;
        send.pair = receive.pair = pair++;
        send.start = send.end = receive.start = receive.end = source.end;
        pairs_.push_back({send, receive, key_of(node)});
        insert_send(send, key_of(source));
      }
    }
  }
  void insert_send(const ZbNode& send, const Key& source) {
    std::vector<ZbNode>& row = rows_[static_cast<std::size_t>(send.stage)];
    auto place = std::ranges::find(row, source, key_of);
    if (place != row.end()) ++place;
    place = std::find_if(place, row.end(), [&](const ZbNode& node) { return node.start >= send.start; });
    row.insert(place, send);
  }

  /// From the last rank to the first, each as soon as the one behind has validated, and before it computes
  /// anything but F of chunk 0.
  const char* insert_post_validation() {
    constexpr std::int64_t kLongAgo = std::numeric_limits<std::int64_t>::min();
    std::int64_t validated = kLongAgo;
    std::optional<std::int64_t> last_deadline;
    std::optional<ZbNode> awaited;  // the send of the rank behind
    for (std::int32_t s = query_.stages - 1; s >= 0; --s) {
      std::vector<ZbNode>& row = rows_[static_cast<std::size_t>(s)];
      const auto deadline = std::ranges::find_if(row, [](const ZbNode& node) {
        return is_compute(node.type) && (node.type != ZbType::kF || node.chunk != 0);
      });
      if (deadline == row.end()) return "no deadline of post-validation";
      const std::int64_t deadline_end = deadline->end;
      const auto place =
          std::find_if(row.begin(), deadline, [&](const ZbNode& node) { return node.start > validated; });
      const std::int64_t time = place != row.begin() ? std::prev(place)->end : place->start;
      if (last_deadline && time >= *last_deadline) return "post-validation comes after a deadline";
      last_deadline = deadline_end;
      const std::int64_t received = validated;
      validated = std::max(validated, time);

      ZbNode own{
          .type = ZbType::kPostValidation, .stage = s, .layer = -s, .start = validated, .end = validated};
      ZbNode send = own;
      send.type = ZbType::kSendPostValidation;
      send.peer = s - 1;
      send.pair = -s;
      if (awaited) {
        ZbNode receive = own;
        receive.type = ZbType::kRecvPostValidation;
        receive.peer = s + 1;
        receive.to_next = true;
        receive.pair = -(s + 1);
        receive.start = receive.end = received;
        pairs_.push_back({*awaited, receive, key_of(s > 0 ? send : own)});
      }
      const auto at = row.insert(place, own);
      awaited.reset();
      if (s > 0) {
        row.insert(at, send);
        awaited = send;
      }
    }
    return nullptr;
  }

  std::optional<std::string> insert_receives() {
    for (Pair& pair : pairs_) {
      const auto& row = rows_[static_cast<std::size_t>(pair.send.stage)];
      pair.place = static_cast<std::size_t>(std::ranges::find(row, key_of(pair.send), key_of) - row.begin());
    }
    // Place within a rank, time and kind across ranks: together no order where times are equal.
    python_sort(pairs_, [](const Pair& a, const Pair& b) {
      if (a.send.stage == b.send.stage) return a.place < b.place;
      if (a.send.start != b.send.start) return a.send.start < b.send.start;
      return a.send.type == ZbType::kSendPostValidation && b.send.type != ZbType::kSendPostValidation;
    });
    std::vector<std::size_t> done(rows_.size());  // where each rank's next message may stand
    for (const Pair& pair : pairs_) {
      const auto sender = static_cast<std::size_t>(pair.send.stage);
      const auto receiver = static_cast<std::size_t>(pair.receive.stage);
      const auto from = [&](std::size_t rank) {
        return rows_[rank].begin() + static_cast<std::ptrdiff_t>(done[rank]);
      };
      const auto send = std::find_if(from(sender), rows_[sender].end(),
                                     [&](const ZbNode& node) { return key_of(node) == key_of(pair.send); });
      if (send == rows_[sender].end()) return "sends out of order";
      done[sender] = static_cast<std::size_t>(send - rows_[sender].begin()) + 1;
      const auto place = std::find_if(from(receiver), rows_[receiver].end(), [&](const ZbNode& node) {
        return pair.receive.start <= node.end || key_of(node) == pair.deadline || is_send(node.type);
      });
      if (place == rows_[receiver].end()) return "no place for a receive";
      const auto consumer = std::find_if(place, rows_[receiver].end(),
                                         [&](const ZbNode& node) { return key_of(node) == pair.deadline; });
      const bool consumed = consumer != rows_[receiver].end();
      done[receiver] = static_cast<std::size_t>(place - rows_[receiver].begin()) + 1;
      rows_[receiver].insert(place, pair.receive);
      if (!consumed) return unconsumed(pair, rows_[receiver]);
    }
    return std::nullopt;
  }

  /// Upstream prints the nodes in two letters or so, those of the first chunk in small ones.
  static std::string unconsumed(const Pair& pair, const std::vector<ZbNode>& row) {
    const auto short_text = [](const ZbNode& node) {
      constexpr std::array<std::string_view, 11> kNames = {"F", "B", "W", "B", "SF", "RF", "SB", "RB", "PV", "SPV", "RPV"};
      const std::string name(kNames[static_cast<std::size_t>(node.type)]);
      return fmt::format("{}{}", node.chunk == 0 ? lower_case(name) : name, node.micro_batch);
    };
    std::string nodes;
    for (const ZbNode& node : row) nodes += (nodes.empty() ? "" : " ") + short_text(node);
    const auto deadline = std::ranges::find(row, pair.deadline, key_of);
    return fmt::format("Cannot find recv consumer node after recv: stage {} recv {} consumer {} nodes: {}", pair.receive.stage,
                       short_text(pair.receive), deadline == row.end() ? "" : short_text(*deadline), nodes);
  }

  /// Receives of what the rank before sent ahead of its own validation.
  const char* mark_rollbacks() {
    for (std::size_t s = 1; s < rows_.size(); ++s) {
      std::unordered_set<std::int32_t> unvalidated;
      for (const ZbNode& node : rows_[s - 1]) {
        if (node.type == ZbType::kPostValidation) break;
        if (node.type == ZbType::kSendForward) unvalidated.insert(node.micro_batch);
        if (node.type == ZbType::kRecvBackward || node.type == ZbType::kSendBackward)
          return "backward before POST_VALIDATION";
        if ((node.type == ZbType::kRecvForward || node.type == ZbType::kSendForward) && node.chunk != 0) {
          return "found node with chunk > 0 before POST_VALIDATION";
        }
      }
      for (ZbNode& node : rows_[s]) {
        if (node.type != ZbType::kRecvForward || node.chunk != 0) continue;
        node.rollback = unvalidated.erase(node.micro_batch) != 0;
      }
      if (!unvalidated.empty()) return "rollback";
    }
    return nullptr;
  }

  const ZeroBubbleQuery& query_;
  std::int32_t layers_;
  ZbOrder rows_;
  std::vector<ZbNode> computed_;  // by type, layer and micro-batch; stage -1 = not yet
  std::vector<Pair> pairs_;
};

}  // namespace

Result<ZbOrder> zero_bubble_with_messages(const ZeroBubbleQuery& query, const ZbOrder& order) {
  return Passes(query, order).run();
}

}  // namespace lockstep::plan
