// Every legal form of passing messages, each as one event; see event_writer.h.
#include <algorithm>
#include <functional>
#include <set>

#include "support/event_writer.h"

namespace lockstep::testing {
namespace {
using enum OpKind;
}

EventWriter::Edge EventWriter::random_edge(int comm) {
  const auto& all = members(comm);
  const std::size_t from = random_.below(all.size());
  const std::size_t to = (from + 1 + random_.below(all.size() - 1)) % all.size();
  return {all[from], all[to]};
}

/// Edges of one exchange, each ordered pair at most once: so the order inside a batch is free.
std::vector<EventWriter::Edge> EventWriter::random_edges(int comm) {
  const auto& all = members(comm);
  const std::size_t n = all.size();
  std::vector<Edge> edges;
  switch (random_.below(4)) {
    case 0: {  // head to head
      const Edge edge = random_edge(comm);
      return {edge, {edge.to, edge.from}};
    }
    case 1:  // ring, one way or both
      for (std::size_t i = 0; i < n; ++i) edges.push_back({all[i], all[(i + 1) % n]});
      if (n > 2 && random_.chance(50)) {
        for (std::size_t i = 0; i < n; ++i) edges.push_back({all[(i + 1) % n], all[i]});
      }
      return edges;
    case 2:  // all to all among the first few
      for (std::size_t i = 0; i < std::min<std::size_t>(n, 4); ++i) {
        for (std::size_t k = 0; k < std::min<std::size_t>(n, 4); ++k) {
          if (i != k || random_.chance(30)) edges.push_back({all[i], all[k]});
        }
      }
      return edges;
    default: {  // anything
      std::set<std::pair<std::int32_t, std::int32_t>> seen;
      for (int i = random_.between(1, 6); i > 0; --i) {
        const Edge edge = random_edge(comm);
        if (seen.insert({edge.from, edge.to}).second) edges.push_back(edge);
      }
      return edges;
    }
  }
}

SketchOp EventWriter::random_message(int comm) {
  static const std::vector<std::string> types{"f32", "bf16", "i64", "u8"};
  static const std::vector<std::string> payloads{"", "", "act", "grad", "act:0.1", "meta"};
  SketchOp op{.comm = comm,
              .datatype = random_.pick(types),
              .count = random_count(),
              .payload = random_.pick(payloads)};
  op.function = random_function();
  if (job_.library == Library::kMpi && random_.chance(60)) op.tag = random_.below(4U);
  return op;
}

/// One message, the sender's call and the receiver's in any form.
void EventWriter::message(const SketchOp& what, Edge edge) {
  static const std::vector<OpKind> mpi_sends{kSend, kSend, kIsend, kSsend, kBsend, kIssend, kIbsend};
  static const std::vector<OpKind> sends{kSend, kIsend};
  const bool nccl = job_.library == Library::kNccl;
  const bool mpi = job_.library == Library::kMpi;
  SketchOp send = what;
  SketchOp receive = what;
  send.kind = nccl ? kSend : random_.pick(mpi ? mpi_sends : sends);
  receive.kind = nccl || random_.chance(50) ? kRecv : kIrecv;
  send.peer = edge.to;
  receive.peer = edge.from;
  if (is_immediate(send.kind)) send.handle = free_handle(edge.from);
  if (is_immediate(receive.kind)) receive.handle = free_handle(edge.to);
  if (nccl) {
    send.stream = random_stream();
    receive.stream = random_stream();
  }
  if (mpi && receive.count == "4" && random_.chance(50)) receive.count = "64";  // room for more is legal
  append(edge.from, send);
  append(edge.to, receive);
}

/// A ring without batches: even members send first, odd ones receive first.
void EventWriter::safe_ring(int comm) {
  const auto& all = members(comm);
  const std::size_t n = all.size();
  const SketchOp what = random_message(comm);
  for (const std::size_t parity : {0U, 1U}) {
    for (std::size_t i = parity; i < n; i += 2) message(what, {all[i], all[(i + 1) % n]});
  }
}

void EventWriter::batch(int comm) {
  const bool may_bracket = job_.library == Library::kNccl || job_.library == Library::kUnknown;
  batch_of(comm, random_edges(comm), may_bracket && random_.chance(50));
}

void EventWriter::batch_of(int comm, const std::vector<Edge>& edges, bool bracketed) {
  std::map<std::int32_t, std::vector<SketchOp>> parts;
  const bool nccl = job_.library == Library::kNccl;
  const bool immediate = !nccl && random_.chance(50);
  for (const Edge edge : edges) {
    SketchOp what = random_message(comm);
    what.peer = edge.to;
    what.kind = immediate ? kIsend : kSend;
    parts[edge.from].push_back(what);
    what.peer = edge.from;
    what.kind = immediate ? kIrecv : kRecv;
    parts[edge.to].push_back(what);
  }
  for (auto& [rank, ops] : parts) {
    random_.shuffle(ops);
    // A rank with a single part may as well make a plain call.
    const std::uint32_t launch = ops.size() == 1 && !bracketed && random_.chance(50) ? 0 : next_launch(rank);
    const std::string handle = random_.chance(50) ? free_handle(rank) : "";
    const std::string stream = nccl ? random_stream() : "";
    if (bracketed) append(rank, {.kind = kGroupStart, .launch = launch});
    for (SketchOp& op : ops) {
      op.launch = launch;
      op.handle = handle;
      op.stream = stream;
      append(rank, op);
    }
    if (bracketed) append(rank, {.kind = kGroupEnd, .launch = launch});
  }
}

/// MPI_Sendrecv all around: a send and a receive that are issued together and waited for together.
void EventWriter::send_receive_ring(int comm) {
  const auto& all = members(comm);
  const std::size_t n = all.size();
  SketchOp what = random_message(comm);
  for (std::size_t i = 0; i < n; ++i) {
    what.launch = next_launch(all[i]);
    what.kind = kSend;
    what.peer = all[(i + 1) % n];
    append(all[i], what);
    what.kind = kRecv;
    what.peer = all[(i + n - 1) % n];
    append(all[i], what);
  }
}

/// MPI, any edges: every rank posts its receives (or its sends) first and then does the others blocking.
void EventWriter::posted_first(int comm) {
  const bool receives_first = random_.chance(50);
  std::map<std::int32_t, std::vector<SketchOp>> first;
  std::map<std::int32_t, std::vector<SketchOp>> second;
  for (const Edge edge : random_edges(comm)) {
    SketchOp what = random_message(comm);
    what.kind = receives_first ? kSend : kIsend;
    what.peer = edge.to;
    (receives_first ? second : first)[edge.from].push_back(what);
    what.kind = receives_first ? kIrecv : kRecv;
    what.peer = edge.from;
    (receives_first ? first : second)[edge.to].push_back(what);
  }
  for (auto& [rank, ops] : first) {
    for (SketchOp& op : ops) {
      op.handle = free_handle(rank);
      append(rank, op);
    }
  }
  for (auto& [rank, ops] : second) {
    for (const SketchOp& op : ops) append(rank, op);
  }
}

/// MPI: two messages that are received in the other order, which their tags allow.
void EventWriter::crossed_tags(int comm) {
  const Edge edge = random_edge(comm);
  SketchOp early = random_message(comm);
  SketchOp late = random_message(comm);
  early.tag = 11;
  late.tag = 12;
  early.peer = late.peer = edge.to;
  early.kind = late.kind = kIsend;
  early.handle = free_handle(edge.from);
  late.handle = free_handle(edge.from);
  append(edge.from, early);
  append(edge.from, late);
  early.peer = late.peer = edge.from;
  early.kind = late.kind = kRecv;
  early.handle = late.handle = "";
  append(edge.to, late);
  append(edge.to, early);
}

/// MPI: look before receiving.
void EventWriter::probed(int comm) {
  const Edge edge = random_edge(comm);
  SketchOp what = random_message(comm);
  what.kind = kSend;
  what.peer = edge.to;
  append(edge.from, what);
  what.peer = edge.from;
  append(edge.to, {.kind = kProbe, .comm = comm, .peer = edge.from, .tag = what.tag});
  what.kind = kRecv;
  append(edge.to, what);
}

void EventWriter::messages(int comm) {
  using Form = std::function<void()>;
  const Form single = [&] { message(random_message(comm), random_edge(comm)); };
  const Form ring = [&] { safe_ring(comm); };
  std::vector<Form> forms{single, single, ring};
  if (job_.library == Library::kMpi) {
    forms.insert(forms.end(), {[&] { send_receive_ring(comm); }, [&] { posted_first(comm); },
                               [&] { crossed_tags(comm); }, [&] { probed(comm); }});
  } else {
    forms.insert(forms.end(), {[&] { batch(comm); }, [&] { batch(comm); }});
  }
  random_.pick(forms)();
}

}  // namespace lockstep::testing
