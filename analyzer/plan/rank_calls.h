// Writes the calls of one rank after the other into a Job, with the name of the code that makes them.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_builder.h"
#include "plan/expansion.h"

namespace lockstep::plan {

/// Code of a framework that makes a call: "stage_1_and_2.py", "get_grad_norm_direct".
struct Function {
  std::string_view file{};
  std::string_view name{};
};

class RankCalls {
 public:
  RankCalls(JobBuilder& builder, const Layout& layout) : builder_(builder), layout_(layout) {}

  // Before the calls: the code that makes them and what it depends on.
  QuantityIndex quantity(std::string name, std::string per, std::string fix, std::string field = "layers");
  /// Innermost function first. Calls of one site depend on the same quantities.
  SiteIndex site(std::initializer_list<Function> frames, std::vector<QuantityIndex> controls);

  void begin(std::int32_t rank);
  std::int32_t rank() const { return rank_; }
  const Layout& layout() const { return layout_; }
  void set(QuantityIndex quantity, std::int64_t value, std::string_view reason = "");

  struct Collective {
    OpKind kind = OpKind::kAllReduce;
    std::string_view family{};
    std::uint64_t count = 0;
    std::string_view datatype{};
    std::string_view redop{};
    std::int32_t root = kNoPeer;  ///< a job rank
    std::string_view label{};
  };
  /// Nothing where the rank is in no group of the family.
  void collective(SiteIndex site, const Collective& call);

  struct Message {
    OpKind kind = OpKind::kSend;
    std::string_view family{};
    std::int32_t peer = 0;  ///< a job rank
    Count count{};
    std::string_view datatype{};
    std::string_view payload{};
    std::string_view handle{};
    std::uint32_t launch = 0;
  };
  void message(SiteIndex site, const Message& message);
  void wait(SiteIndex site, std::string_view handle);
  std::uint32_t next_launch() { return ++launches_; }
  Count symbol(std::string_view text) { return Count::symbol(builder_.intern(text)); }

  std::vector<Quantity> take_quantities() { return std::move(quantities_); }
  std::map<SiteIndex, std::vector<QuantityIndex>> take_controls() { return std::move(controls_); }

 private:
  Operation& add(SiteIndex site);
  CommIndex communicator(std::string_view family);
  std::uint32_t label(std::string_view text);

  JobBuilder& builder_;
  const Layout& layout_;
  std::int32_t rank_ = 0;
  std::uint32_t launches_ = 0;
  OperationTable* program_ = nullptr;
  std::map<std::string, CommIndex, std::less<>> communicators_{};  ///< of the rank, by family
  std::map<std::string, std::uint32_t, std::less<>> labels_{};
  std::vector<Quantity> quantities_{};
  std::map<SiteIndex, std::vector<QuantityIndex>> controls_{};
};

}  // namespace lockstep::plan
