// The closed list of finding classes and the words of the contract.
#include <set>

#include <gtest/gtest.h>

#include "diagnose/finding.h"

namespace lockstep {
namespace {

TEST(FindingClasses, CoverTheWholeTaxonomy) {
  std::set<std::string> covered;
  for (const FindingClass& entry : finding_classes())
    for (std::size_t i = 0; i + 3 <= entry.taxonomy.size(); i += 4) covered.emplace(entry.taxonomy.substr(i, 3));
  std::set<std::string> expected{"U01"};
  for (int i = 1; i <= 18; ++i) expected.insert((i < 10 ? "T0" : "T") + std::to_string(i));
  for (int i = 1; i <= 8; ++i) expected.insert("N0" + std::to_string(i));
  EXPECT_EQ(covered, expected);
}

TEST(FindingClasses, SayWhatHowAndWhatToDo) {
  std::set<std::string_view> ids;
  for (const FindingClass& entry : finding_classes()) {
    EXPECT_TRUE(ids.insert(entry.id).second) << entry.id;
    EXPECT_TRUE(entry.means.ends_with('.') && entry.arises.ends_with('.') && entry.fixed.ends_with('.')) << entry.id;
  }
  EXPECT_EQ(ids.size(), 45U);
}

TEST(FindClass, KnowsItsIdsOnly) {
  ASSERT_NE(find_class("order_differs"), nullptr);
  EXPECT_EQ(find_class("order_differs")->taxonomy, "T11");
  EXPECT_EQ(find_class("order"), nullptr);
  EXPECT_EQ(find_class(""), nullptr);
}

TEST(SeverityNames, AreReadBack) {
  for (const auto severity : {Severity::kCertain, Severity::kUndefinedBehaviour, Severity::kContractViolation,
                              Severity::kPotential, Severity::kUnsafe, Severity::kNote})
    EXPECT_EQ(severity_from_name(severity_name(severity)), severity);
  EXPECT_EQ(severity_from_name("Certain"), std::nullopt);
}

}  // namespace
}  // namespace lockstep
