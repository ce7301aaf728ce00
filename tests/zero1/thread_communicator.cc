#include "thread_communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zero1 {
namespace {

constexpr std::chrono::seconds kPatience{60};

using Bytes = std::vector<std::byte>;

/// Shared by all communicators of a job: one lock is enough for tests.
struct Job {
  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
};

}  // namespace

struct ThreadCommunicator::Meeting {
  std::shared_ptr<Job> job;
  struct Call {
    std::string what;  ///< kind, count and type: must be equal on all members
    std::map<int, Bytes> brought;
    int left = 0;  ///< members that have taken the result
  };
  std::map<std::size_t, Call> calls;  ///< by position
  std::vector<std::size_t> made;      ///< by rank
  std::map<std::pair<int, int>, std::deque<Bytes>> mail;
  std::map<std::pair<std::size_t, int>, std::shared_ptr<Meeting>>
      children;  ///< by position of the split and colour

  explicit Meeting(std::shared_ptr<Job> of, int size)
      : job(std::move(of)), made(static_cast<std::size_t>(size), 0) {}

  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, const std::string& what, Condition condition) {
    const bool met = job->changed.wait_for(lock, kPatience, [&] { return job->failed || condition(); });
    if (!met || (job->failed && !condition())) throw NoPeer(what + ": no peer");
  }

  /// Brings `mine` and returns what all members brought, by rank.
  std::vector<Bytes> meet(int rank, const std::string& what, Bytes mine) {
    std::unique_lock lock(job->mutex);
    const std::size_t position = made[static_cast<std::size_t>(rank)]++;
    Call& call = calls[position];
    if (call.what.empty()) call.what = what;
    if (call.what != what)
      throw std::logic_error("ranks differ at one position: " + call.what + " and " + what);
    call.brought.emplace(rank, std::move(mine));
    job->changed.notify_all();
    wait(lock, what, [&] { return call.brought.size() == made.size(); });
    std::vector<Bytes> all;
    for (const auto& [from, bytes] : call.brought) all.push_back(bytes);
    if (++call.left == static_cast<int>(made.size())) calls.erase(position);
    return all;
  }
};

namespace {

Bytes bytes_at(const void* values, std::size_t count) {
  Bytes bytes(count);
  if (count > 0) std::memcpy(bytes.data(), values, count);
  return bytes;
}

std::string call_name(const char* kind, std::size_t count, DType type) {
  return std::string(kind) + " " + std::to_string(count) + " of type " +
         std::to_string(static_cast<int>(type));
}

Bytes joined(const std::vector<Bytes>& all) {
  Bytes whole;
  for (const Bytes& part : all) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}

}  // namespace

void ThreadCommunicator::run(int ranks, const std::function<void(ThreadCommunicator)>& body) {
  const auto job = std::make_shared<Job>();
  const auto meeting = std::make_shared<Meeting>(job, ranks);
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadCommunicator world;
      world.meeting_ = meeting;
      world.rank_ = rank;
      world.size_ = ranks;
      try {
        body(std::move(world));
      } catch (...) {
        const std::lock_guard lock(job->mutex);
        if (!job->failed) first = std::current_exception();
        job->failed = true;
        job->changed.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

ThreadCommunicator ThreadCommunicator::split(int color, int key, const char*) const {
  const int mine[2] = {color, key};
  std::vector<std::pair<int, int>> members;  // key, rank here
  const std::size_t position = meeting_->made[static_cast<std::size_t>(rank_)];
  const std::vector<Bytes> all = meeting_->meet(rank_, "split", bytes_at(mine, sizeof mine));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    int other[2];
    std::memcpy(other, all[rank].data(), sizeof other);
    if (other[0] == color) members.emplace_back(other[1], static_cast<int>(rank));
  }
  std::sort(members.begin(), members.end());
  ThreadCommunicator made;
  made.size_ = static_cast<int>(members.size());
  made.rank_ =
      static_cast<int>(std::find(members.begin(), members.end(), std::pair{key, rank_}) - members.begin());
  const std::lock_guard lock(meeting_->job->mutex);
  std::shared_ptr<Meeting>& child = meeting_->children[{position, color}];
  if (child == nullptr) child = std::make_shared<Meeting>(meeting_->job, made.size_);
  made.meeting_ = child;
  return made;
}

void ThreadCommunicator::all_reduce(void* values, std::size_t count, DType type, Sum op) const {
  const auto all = meeting_->meet(rank_, call_name(op == Sum::kSum ? "sum" : "max", count, type),
                                  bytes_at(values, count * bytes_of(type)));
  if (op == Sum::kSum) return sum_in_rank_order(joined(all).data(), values, count, count, size_, type);
  for (const Bytes& other : all) {
    for (std::size_t i = 0; i < count; ++i) {
      if (type == DType::kI64) {
        std::int64_t value = 0;
        std::memcpy(&value, other.data() + 8 * i, 8);
        static_cast<std::int64_t*>(values)[i] = std::max(static_cast<std::int64_t*>(values)[i], value);
      } else if (type == DType::kU8) {
        static_cast<std::byte*>(values)[i] = std::max(static_cast<std::byte*>(values)[i], other[i]);
      } else {
        throw std::logic_error("a maximum of such a type is not used");
      }
    }
  }
}

void ThreadCommunicator::reduce_scatter(void* values, std::size_t each, DType type) const {
  const std::size_t count = each * static_cast<std::size_t>(size_);
  const std::size_t offset = each * bytes_of(type) * static_cast<std::size_t>(rank_);
  const Bytes all = joined(meeting_->meet(rank_, call_name("reduce_scatter", count, type),
                                          bytes_at(values, count * bytes_of(type))));
  sum_in_rank_order(all.data() + offset, static_cast<std::byte*>(values) + offset, each, count, size_, type);
}

void ThreadCommunicator::all_gather(void* values, std::size_t each, DType type) const {
  const std::size_t bytes = each * bytes_of(type);
  const auto* own = static_cast<std::byte*>(values) + bytes * static_cast<std::size_t>(rank_);
  const Bytes all = joined(meeting_->meet(rank_, call_name("all_gather", each, type), bytes_at(own, bytes)));
  if (!all.empty()) std::memcpy(values, all.data(), all.size());
}

void ThreadCommunicator::broadcast(void* values, std::size_t count, DType type, int root) const {
  const std::string what = call_name("broadcast", count, type) + " from " + std::to_string(root);
  const auto all = meeting_->meet(rank_, what, bytes_at(values, count * bytes_of(type)));
  std::memcpy(values, all[static_cast<std::size_t>(root)].data(), count * bytes_of(type));
}

void ThreadCommunicator::send(const void* values, std::size_t count, DType type, int peer) const {
  const std::lock_guard lock(meeting_->job->mutex);
  meeting_->mail[{rank_, peer}].push_back(bytes_at(values, count * bytes_of(type)));
  meeting_->job->changed.notify_all();
}

void ThreadCommunicator::recv(void* values, std::size_t count, DType type, int peer) const {
  std::unique_lock lock(meeting_->job->mutex);
  auto& box = meeting_->mail[{peer, rank_}];
  meeting_->wait(lock, "recv", [&] { return !box.empty(); });
  if (box.front().size() != count * bytes_of(type))
    throw std::logic_error("a message of another size than expected");
  std::memcpy(values, box.front().data(), box.front().size());
  box.pop_front();
}

void ThreadCommunicator::barrier() const { meeting_->meet(rank_, "barrier", {}); }

std::size_t ThreadCommunicator::collectives() const {
  return meeting_->made[static_cast<std::size_t>(rank_)];
}

}  // namespace zero1
