// Issues work to streams and runs it.
#include "cuda/engine.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "settings.h"

namespace lockstep::standin {
namespace {

thread_local int t_device = 0;
thread_local std::map<int, Stream*>* t_per_thread = nullptr;

const Stream& stream_of(const Position& position) { return *static_cast<const Stream*>(position.stream); }

void work_off(Stream* stream) {
  set_current_device(stream->device);
  Lock lock(engine().mutex);
  while (true) {
    stream->ready.wait(lock, [stream] { return !stream->queue.empty() || stream->destroyed; });
    if (stream->queue.empty()) break;
    const Item item = stream->queue.front();
    wait_for(lock, item.after, false);
    if (item.work != nullptr) {
      lock.unlock();
      item.work->run(item.work->argument);
      lock.lock();
    }
    stream->queue.pop_front();
    ++stream->done;
    ++engine().progress;
    if (stream->queue.empty()) --engine().busy_streams;
    engine().changed.notify_all();
  }
  stream->has_worker = false;
}

/// Legacy rule: the null stream and the blocking streams of a device wait for each other.
void order_with_null_stream(Stream& stream) {
  Engine& all = engine();
  if (stream.is_null) {
    for (Stream* other : all.streams)
      if (other->device == stream.device && !other->is_null && (other->flags & kStreamNonBlocking) == 0 &&
          other->capture == nullptr && other->done < other->issued)
        stream.pending.push_back(tail_of(*other));
  } else if ((stream.flags & kStreamNonBlocking) == 0) {
    const auto found = all.null_streams.find(stream.device);
    if (found != all.null_streams.end() && found->second->done < found->second->issued)
      stream.pending.push_back(tail_of(*found->second));
  }
}

}  // namespace

Engine& engine() {
  static auto* only = new Engine;  // never destroyed: workers outlive main
  return *only;
}

int current_device() { return t_device; }
void set_current_device(int device) { t_device = device; }

int device_count() {
  static const int count = [] {
    for (const char* name : {"LOCKSTEP_REHEARSE_DEVICES", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE", "WORLD_SIZE"}) {
      const char* value = std::getenv(name);
      const int number = value == nullptr ? 0 : std::atoi(value);
      if (number > 0) return number;
    }
    return 8;
  }();
  return count;
}

Stream* new_stream(Lock&, int device, unsigned flags, int priority) {
  auto* stream = new Stream;
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = engine().streams.size() + 1;
  engine().streams.push_back(stream);
  return stream;
}

Stream* find_stream(Lock& held, cudaStream_t handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value == 0 || value == kStreamLegacy) {
    Stream*& stream = engine().null_streams[t_device];
    if (stream == nullptr) {
      stream = new_stream(held, t_device, 0, 0);
      stream->is_null = true;
    }
    return stream;
  }
  if (value == kStreamPerThread) {
    if (t_per_thread == nullptr) t_per_thread = new std::map<int, Stream*>;
    Stream*& stream = (*t_per_thread)[t_device];
    if (stream == nullptr) stream = new_stream(held, t_device, 0, 0);
    return stream;
  }
  for (Stream* stream : engine().streams)
    if (reinterpret_cast<std::uintptr_t>(stream) == value) return stream->destroyed ? nullptr : stream;
  return nullptr;
}

Position tail_of(const Stream& stream) { return {&stream, stream.issued}; }

bool passed(const Position& position) {
  return position.stream == nullptr || stream_of(position).done >= position.number;
}

void wait_for(Lock& held, const std::vector<Position>& positions, bool host) {
  auto all_passed = [&positions] {
    for (const Position& position : positions)
      if (!passed(position)) return false;
    return true;
  };
  if (all_passed()) return;
  using Test = decltype(all_passed);
  Wait wait;
  wait.ready = [](void* test) { return (*static_cast<Test*>(test))(); };
  wait.argument = &all_passed;
  wait.host = host;
  begin_wait(held, wait);
  engine().changed.wait(held, all_passed);
  end_wait(held, wait);
}

Position issue(Lock&, Stream& stream, std::shared_ptr<Work> work, std::vector<Position> after) {
  Engine& all = engine();
  if (stream.capture != nullptr) {
    if (work != nullptr) stream.capture->nodes.push_back(std::move(work));
    return {};
  }
  order_with_null_stream(stream);
  after.insert(after.end(), stream.pending.begin(), stream.pending.end());
  stream.pending.clear();
  std::erase_if(after, [&stream](const Position& position) { return position.stream == &stream || passed(position); });
  if (stream.queue.empty()) ++all.busy_streams;
  stream.queue.push_back({std::move(work), std::move(after)});
  ++stream.issued;
  ++all.progress;
  if (!stream.has_worker) {
    stream.has_worker = true;
    std::thread(work_off, &stream).detach();
  }
  stream.ready.notify_one();
  return tail_of(stream);
}

}  // namespace lockstep::standin
