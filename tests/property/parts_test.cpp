// How a tile is shared out among those who finish it together (core/tile_parts.hpp): over all kernels, every packet has one owner.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "sluice/kernel_config.hpp"
#include "sluice/kernel_list.hpp"

#include "core/kernel_layout.hpp"
#include "core/tile_parts.hpp"

namespace sluice {
namespace {

constexpr int kMostSplits = 16;  // of Reduction::cluster 8; slices_of_tile() goes so far

template <class Check>
void for_each_kernel_and_splits(Check check) {
  for (const KernelConfig& kernel : kernel_list())
    for (int splits = 2; splits <= kMostSplits; ++splits) {
      SCOPED_TRACE(name(kernel) + " in " + std::to_string(splits));
      check(kernel, splits);
    }
}

TEST(Parts, FollowOneAnotherAndCoverTheTile) {
  for_each_kernel_and_splits([](const KernelConfig& kernel, int splits) {
    EXPECT_EQ(part_begin(kernel, 0, splits), 0);
    EXPECT_EQ(part_begin(kernel, splits, splits), packets_per_warpgroup(kernel));
    for (int cta = 0; cta < splits; ++cta) EXPECT_LE(part_begin(kernel, cta, splits), part_begin(kernel, cta + 1, splits)) << cta;
  });
}

TEST(Parts, TheOwnerOfAPacketIsWhosePartHoldsIt) {
  for_each_kernel_and_splits([](const KernelConfig& kernel, int splits) {
    for (int packet = 0; packet < packets_per_warpgroup(kernel); ++packet) {
      const int owner = part_owner(kernel, packet, splits);
      ASSERT_GE(owner, 0) << packet;
      ASSERT_LT(owner, splits) << packet;
      EXPECT_LE(part_begin(kernel, owner, splits), packet);
      EXPECT_LT(packet, part_begin(kernel, owner + 1, splits));
    }
  });
}

// What a launch hands to its kernel: bytes, which the largest tile must not overflow.
TEST(Parts, AreTheSameInTheTable) {
  for_each_kernel_and_splits([](const KernelConfig& kernel, int splits) {
    const TileParts parts = tile_parts(kernel, splits);
    ASSERT_EQ(parts.count, splits);
    for (int cta = 0; cta < splits; ++cta) {
      const TilePart part = parts[cta];
      EXPECT_EQ(part.begin, part_begin(kernel, cta, splits)) << cta;
      EXPECT_EQ(part.end, part_begin(kernel, cta + 1, splits)) << cta;
      EXPECT_EQ(part.whole_chunks, parts_are_chunks(kernel, splits));
    }
  });
}

// Where there is a chunk of the epilogue for everybody, parts begin with one: the copy engine stores no less. Else they differ by one.
TEST(Parts, AreWholeChunksOrEqual) {
  std::set<bool> seen;
  for_each_kernel_and_splits([&](const KernelConfig& kernel, int splits) {
    const bool chunks = parts_are_chunks(kernel, splits);
    seen.insert(chunks);
    int least = packets_per_warpgroup(kernel), most = 0;
    for (int cta = 0; cta < splits; ++cta) {
      const int begin = part_begin(kernel, cta, splits), length = part_begin(kernel, cta + 1, splits) - begin;
      least = std::min(least, length), most = std::max(most, length);
      EXPECT_TRUE(!chunks || begin % packets_per_block(kernel) % kPacketsPerChunk == 0) << cta;
    }
    if (chunks)
      EXPECT_GE(least, 1);
    else
      EXPECT_LE(most - least, 1);
  });
  EXPECT_EQ(seen.size(), 2u);
}

// Reduction::separate: nobody is called upon for a slice without a packet, nor for more slices than there are pieces or bits.
TEST(Slices, AreNeverEmpty) {
  for (const KernelConfig& kernel : kernel_list())
    for (int splits = 2; splits <= kMostPiecesInSlices; ++splits) {
      if (!joins_pieces(kernel)) continue;
      const int slices = slices_of_tile(kernel, splits);
      ASSERT_GE(slices, 1) << name(kernel);
      ASSERT_LE(slices, std::min(splits, 16)) << name(kernel);
      for (int slice = 0; slice < slices; ++slice)
        ASSERT_LT(part_begin(kernel, slice, slices), part_begin(kernel, slice + 1, slices))
            << name(kernel) << ", " << slice << " of " << slices;
    }
}

// What others push into the ring of stages ends within it: worked out here from the parts, not from parts_fit()'s own sum.
TEST(Parts, FitIntoTheRing) {
  std::set<bool> seen;
  for_each_kernel_and_splits([&](const KernelConfig& kernel, int splits) {
    if (!joins_in_cluster(kernel)) return;
    int packets_here = 0;
    for (int cta = 0; cta < splits; ++cta)
      packets_here = std::max(packets_here, (splits - 1) * (part_begin(kernel, cta + 1, splits) - part_begin(kernel, cta, splits)));
    const SharedMemoryLayout layout = shared_memory_layout(kernel);
    const int needed = consumer_warpgroups(kernel) * packets_here * 128 * 16;
    if (parts_fit(kernel, splits)) {
      EXPECT_LE(needed, layout.stages * layout.stage_bytes);
      EXPECT_LE(needed, layout.staging_offset);
    }
    seen.insert(parts_fit(kernel, splits));
  });
  EXPECT_TRUE(seen.contains(true));
}

}  // namespace
}  // namespace sluice
