// Programs that compile to one script but for the names of gates: ranks that do the same at places of their own. All
// but the first are copied from it, which is less than half of the work.
//
// The theorem. Program b is like program a where
//   (1) their operations have, one by one, equal kind, launch, flags, state, stream and handle;
//   (2) they name communicators one to one, each of the same library as its counterpart;
//   (3) their messages, and waits for messages, name partners one to one, or no rank at the same places;
//   (4) their parts are alike, one by one (Part::is_like): both meet somebody or neither does, both arrive or neither,
//       something waits for both or for neither.
// Then the script of b is that of a, with the gate of operation i of a replaced by that of operation i of b, and
// internal gates by as many new ones.
//
// Proof. What the compiler makes of a program is a function of what program_compiler.h lists. Of that, (1) and (4) are
// equal; the traits that it asks for follow from (1). Queues are told apart by stream, communicator, or communicator
// and partner: by (1), (2) and (3) operations of b share one exactly where those of a do; so do waits for a partner. It
// compares gates in one place only, where the messages of one coupled batch share one, which are there all messages of
// the batch that meet somebody (coupling.h). Every item at a rendezvous stands there for its own operation, so that
// operation says which gate to put in. Order among actors may be another one; the outcome of a replay does not depend
// on it (replay.h).
//
// Nothing is taken to be alike: every operation of every program is compared.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/job.h"
#include "replay/rendezvous.h"
#include "replay/script.h"

namespace lockstep {

class AlikePrograms {
 public:
  AlikePrograms(const Job& job, const CallRules& rules, Script& script) : job_(job), rules_(rules), script_(script) {}

  /// Appends the actors of `program`, copied from one that it is like; false where there is none. O(operations)
  bool copy(ProgramIndex program, std::span<const Part> parts);

  /// Before and after a program is compiled, so that others can be copied from it.
  void begin();
  void remember(ProgramIndex program, std::span<const Part> parts);

 private:
  struct Compiled {
    ProgramIndex program = kNoProgram;
    std::vector<Part> parts{};
    std::uint32_t first_actor = 0, end_actor = 0;
    std::uint32_t first_gate = 0, end_gate = 0;  // internal ones
    std::size_t first_wait = 0, end_wait = 0;    // in Script::host_waits
  };
  /// Names on both sides, which correspond one to one.
  class Names {
   public:
    void clear() { pairs_.clear(); }
    bool contains(std::uint32_t a, std::uint32_t b) const {
      for (const Pair& pair : pairs_) {
        if (pair.a == a) return pair.b == b;
      }
      return false;
    }
    /// False where one of them has another counterpart, or there are too many.
    bool add(std::uint32_t a, std::uint32_t b);

   private:
    struct Pair {
      std::uint32_t a = 0, b = 0;
    };
    std::vector<Pair> pairs_;
  };
  static constexpr std::size_t kMostNames = 64;        // a program with more is compiled
  static constexpr std::size_t kMostTried = 4;         // of one sort of beginning and end
  static constexpr std::size_t kMostRemembered = 256;  // programs, and their operations: bounds memory
  static constexpr std::size_t kMostOperations = std::size_t{1} << 24;

  bool names_match(const Operation& a, const Operation& b);
  bool is_like(const Compiled& model, std::span<const Operation> operations, std::span<const Part> parts);
  void append_copy(const Compiled& model, ProgramIndex program, std::span<const Part> parts);

  const Job& job_;
  const CallRules& rules_;
  Script& script_;
  std::vector<Compiled> compiled_;
  std::size_t operations_ = 0;  // of compiled_
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>
      by_ends_;                     // hash of first and last operations: into compiled_
  Names communicators_, partners_;  // scratch
  Compiled begun_;
};

}  // namespace lockstep
