#include "read/native_names.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace lockstep {
namespace {

struct NameCase {
  std::string name;
  OpKind kind;
  bool nonblocking = false;
  friend void PrintTo(const NameCase& c, std::ostream* os) { *os << c.name; }
};

class KindFromNativeName : public testing::TestWithParam<NameCase> {};

TEST_P(KindFromNativeName, KnowsTheSpelling) {
  const auto named = kind_from_native_name(GetParam().name);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->kind, GetParam().kind);
  EXPECT_EQ(named->nonblocking, GetParam().nonblocking);
}

INSTANTIATE_TEST_SUITE_P(Table, KindFromNativeName, testing::ValuesIn<NameCase>({
    {"all_reduce", OpKind::kAllReduce},
    {"allreduce", OpKind::kAllReduce},
    {"ALLREDUCE", OpKind::kAllReduce},
    {"AllReduce", OpKind::kAllReduce},
    {"ncclAllReduce", OpKind::kAllReduce},
    {"pncclAllReduce", OpKind::kAllReduce},
    {"MPI_Allreduce", OpKind::kAllReduce},
    {"PMPI_Allreduce", OpKind::kAllReduce},
    {"MPI_Iallreduce", OpKind::kAllReduce, true},
    {"MPI_Allreduce_init", OpKind::kAllReduce, true},
    {"all_gather_into_tensor", OpKind::kAllGather},
    {"_all_gather_base", OpKind::kAllGather},
    {"_allgather_base", OpKind::kAllGather},
    {"reduce_scatter_tensor", OpKind::kReduceScatter},
    {"_reduce_scatter_base", OpKind::kReduceScatter},
    {"all_to_all_single", OpKind::kAllToAll},
    {"broadcast_object_list", OpKind::kBroadcast},
    {"dist.all_reduce", OpKind::kAllReduce},
    {"nccl:all_reduce", OpKind::kAllReduce},
    {"ncclCommSplit", OpKind::kSplit},
    {"MPI_Comm_split", OpKind::kSplit},
    {"MPI_Comm_idup", OpKind::kDup, true},
    {"MPI_Reduce_scatter", OpKind::kReduceScatterV},
    {"MPI_Reduce_scatter_block", OpKind::kReduceScatter},
    {"MPI_Isend", OpKind::kIsend, true},
    {"isend", OpKind::kIsend, true},
    {"MPI_Waitall", OpKind::kWait},
    {"ncclGroupStart", OpKind::kGroupStart},
}));

TEST(KindFromNativeName, RefusesWhatItDoesNotKnow) {
  for (const std::string& name : {std::string("bogus"), std::string(), std::string("all_reduce2"), std::string(100000, '_')}) {
    EXPECT_FALSE(kind_from_native_name(name)) << name.substr(0, 20);
  }
}

TEST(DatatypeFromNativeName, GivesTheShortName) {
  EXPECT_EQ(datatype_from_native_name("float32"), "f32");
  EXPECT_EQ(datatype_from_native_name("torch.bfloat16"), "bf16");
  EXPECT_EQ(datatype_from_native_name("ncclFloat16"), "f16");
  EXPECT_EQ(datatype_from_native_name("MPI_DOUBLE"), "f64");
  EXPECT_EQ(datatype_from_native_name("object"), "object");
  EXPECT_EQ(datatype_from_native_name("act"), "");
}

TEST(RedopFromNativeName, GivesTheShortName) {
  EXPECT_EQ(redop_from_native_name("SUM"), "sum");
  EXPECT_EQ(redop_from_native_name("ReduceOp.MAX"), "max");
  EXPECT_EQ(redop_from_native_name("RedOpType.AVG"), "avg");
  EXPECT_EQ(redop_from_native_name("ncclSum"), "sum");
  EXPECT_EQ(redop_from_native_name("MPI_MINLOC"), "minloc");
  EXPECT_EQ(redop_from_native_name("mine"), "");
}

}  // namespace
}  // namespace lockstep
