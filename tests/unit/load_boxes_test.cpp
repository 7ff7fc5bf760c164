// In which boxes operands are fetched (core/load_boxes.hpp). That kernels and launch agree on it is for the emulator to find.
#include <gtest/gtest.h>

#include "core/load_boxes.hpp"

namespace sluice {
namespace {

constexpr int kRowElems = 64;

LoadBoxes boxes(const FetchedOperand& operand, int tile_k = 64, std::int64_t k = 4096, std::int64_t batch = 1) {
  return load_boxes(operand, tile_k, kRowElems, k, batch);
}

TEST(LoadBoxes, TheLastTileEndsWithTheOperand) {
  const LoadBoxes b = boxes({.vectors = 537, .tile_vectors = 128});
  EXPECT_EQ(b.vectors, 128);
  EXPECT_TRUE(b.ends_early);
  EXPECT_EQ(b.last, 25);
}

TEST(LoadBoxes, OfThoseWhoShareTheLastTileSomeFetchLess) {
  const LoadBoxes b = boxes({.vectors = 4096 + 24, .tile_vectors = 128, .sharers = 2});
  EXPECT_EQ(b.vectors, 64);
  EXPECT_TRUE(b.ends_early);
  EXPECT_EQ(b.last, 24);
}

TEST(LoadBoxes, OfThoseWhoShareTheLastTileSomeFetchNothing) {
  const LoadBoxes b = boxes({.vectors = 4096 + 64, .tile_vectors = 128, .sharers = 2});
  EXPECT_TRUE(b.ends_early);
  EXPECT_EQ(b.last, 0) << "no box is shorter, one CTA has none";
}

TEST(LoadBoxes, WholeTilesAllTheWay) {
  const LoadBoxes b = boxes({.vectors = 512, .tile_vectors = 128});
  EXPECT_FALSE(b.ends_early);
  EXPECT_EQ(b.last, 0);
}

TEST(LoadBoxes, FewerVectorsThanATileMakeItsBoxNarrow) {
  const LoadBoxes b = boxes({.vectors = 17, .tile_vectors = 64});
  EXPECT_EQ(b.vectors, 17);
  EXPECT_FALSE(b.ends_early);
}

TEST(LoadBoxes, FewerVectorsThanASliceLeaveTheOthersNothing) {
  const LoadBoxes b = boxes({.vectors = 17, .tile_vectors = 64, .sharers = 2});
  EXPECT_EQ(b.vectors, 32);
  EXPECT_TRUE(b.ends_early);
  EXPECT_EQ(b.last, 17);
}

TEST(LoadBoxes, OneBoxForAllSlabsEvenOfATileThatIsNearlyWhole) {
  const LoadBoxes b = boxes({.vectors = 64 + 50, .tile_vectors = 64}, 128);
  EXPECT_TRUE(b.whole_tiles);
  EXPECT_FALSE(b.ends_early) << "14 rows outside cost less than a box for each slab";
}

TEST(LoadBoxes, ABoxForEachSlabOfALastTileThatLacksMuch) {
  const LoadBoxes b = boxes({.vectors = 64 + 40, .tile_vectors = 64}, 128);
  EXPECT_TRUE(b.whole_tiles) << "of the tiles before";
  EXPECT_TRUE(b.ends_early);
  EXPECT_EQ(b.last, 40);
}

TEST(LoadBoxes, WhereGroupsEndOnlyTheDeviceKnows) {
  EXPECT_FALSE(boxes({.vectors = 537, .tile_vectors = 64, .of_groups = true}).ends_early);
  const LoadBoxes by_blocks = boxes({.vectors = 537, .tile_vectors = 128, .block_rows = 64, .of_groups = true});
  EXPECT_EQ(by_blocks.vectors, 64);
  EXPECT_FALSE(by_blocks.ends_early);
}

TEST(LoadBoxes, ContiguousVectorsComeInBlocks) {
  const LoadBoxes b = boxes({.k_major = false, .vectors = 537, .tile_vectors = 128});
  EXPECT_EQ(b.vectors, kRowElems);
  EXPECT_FALSE(b.ends_early);
}

}  // namespace
}  // namespace sluice
