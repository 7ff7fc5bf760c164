// How a tile that is computed in pieces is shared out among those who finish it (Reduction::separate, Reduction::cluster).
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"

#include "core/kernel_layout.hpp"
#include "core/tile_parts_table.hpp"

namespace sluice {

// Sums are handed over in packets of four accumulators a thread: 64 rows of P by 8 columns of Q for a warpgroup.
constexpr int packets_per_warpgroup(const KernelConfig& c) { return accumulators_per_thread(c) / 4; }
inline constexpr int kPacketBytes = kWarpgroupThreads * 16;

// Whether the kernel can compute tiles in pieces: bringing them together takes registers that the largest accumulators do not leave, and
// tiles of 256 x 152 and 256 x 160 in ranges took 1.1 to 1.2 of what others did (one H200, 29 November 2026).
// (FP8: nor do short sums beside them. Of three warpgroups' kernels, those that dequantise have few; but beside fp16, where zero points and
// scales take turns in the same loop, 64 are one too many.)
constexpr bool joins_pieces(const KernelConfig& c) {
  if (streams(c) || is_short(c)) return false;
  if (consumer_warpgroups(c) > 2) return dequantises(c) && (c.type_a != DataType::fp16 || accumulators_per_thread(c) <= 32);
  return accumulators_per_thread(c) <= (promotes(c) ? 96 : 136);
}
// Whether pieces can meet in a cluster of CTAs without one of the kernel's own (Reduction::cluster): beside more accumulators its code is
// spilled for. In the layouts of inference alone, for the sake of the time it takes to compile.
constexpr bool joins_in_cluster(const KernelConfig& c) {
  return joins_pieces(c) && accumulators_per_thread(c) <= (dequantises(c) ? 64 : 128) && k_major_a(c) && k_major_b(c) &&
         cluster_size(c) == 1 && c.schedule == KernelSchedule::cooperative && c.load == LoadPath::tma;
}
// Whether many pieces can finish a tile in slices (Reduction::separate): a tile large enough for more accumulators is not cut in many, and
// two CTAs on an SM have half of the registers.
constexpr bool joins_in_slices(const KernelConfig& c) {
  return joins_pieces(c) && k_major_a(c) && k_major_b(c) && c.schedule == KernelSchedule::cooperative && c.load == LoadPath::tma &&
         consumer_warpgroups(c) <= 2 && accumulators_per_thread(c) <= (c.ctas_per_sm == 1 ? 64 : 16);
}
// Whether a kernel's CTAs gain by the requests of others on the same GPC (core/launched_clusters.hpp): of 16-bit operands; with FP8 and
// weights of 4 bits nothing was gained, nor with larger tiles, which ask L2 for less.
constexpr bool shares_lines(const KernelConfig& c) {
  constexpr int kMostElems = 128 * 128;
  const bool plain = c.load == LoadPath::tma && !streams(c) && !promotes(c) && !dequantises(c);
  return plain && cluster_size(c) == 1 && c.ctas_per_sm == 1 && c.tile_m * c.tile_n <= kMostElems;
}
// Whether whole tiles can be dealt by place (kernel/places.cuh). Not cooperative ones of 64 x 64, which are for tiles in many pieces: to
// jump over what claims a place costs a short launch 0.2 us (128 x 128 x 16384, an H100: 6.16 us without it, 6.35 with it). Tiles of
// groups can in FP8, whose groups alone have been seen to gain by it.
constexpr bool claims_places(const KernelConfig& c) {
  if (c.scope == KernelScope::groups)
    return promotes(c) && cluster_size(c) == 1 && c.ctas_per_sm == 1 && c.schedule == KernelSchedule::cooperative;
  return shares_lines(c) && !(c.schedule == KernelSchedule::cooperative && c.tile_m == 64 && c.tile_n == 64);
}
// Whether pieces may be launched in clusters that are none of the kernel's own (core/launched_clusters.hpp): then the rank of a CTA there
// does not say which part of a tile is its own. (Whole tiles are so launched by any kernel. Pieces of 16 x 64 and pingpong's gained
// nothing.)
constexpr bool takes_neighbours(const KernelConfig& c) {
  constexpr int kLeastElems = 64 * 32;
  return joins_pieces(c) && cluster_size(c) == 1 && c.ctas_per_sm == 1 && c.schedule == KernelSchedule::cooperative &&
         c.load == LoadPath::tma && !promotes(c) && !dequantises(c) && c.tile_m * c.tile_n >= kLeastElems;
}
// Slices of a tile under Reduction::separate: one for each piece, as long as there are packets for them and bits in the word they share.
constexpr int slices_of_tile(const KernelConfig& c, int splits) {
  const int packets = packets_per_warpgroup(c), most = packets < kMostParts ? packets : kMostParts;
  return splits < most ? splits : most;
}

// Which part of a tile each of `splits` CTAs of a cluster finishes: packets [part_begin(cta), part_begin(cta + 1)) of every warpgroup.
// Whole chunks of the epilogue where there is one for each CTA, since the copy engine can store them, else what makes the parts equal.
inline constexpr int kPacketsPerChunk = kSwizzleBytes / 2 / 8;  // of 16-bit results; a whole number of fp32 chunks
constexpr int packets_per_block(const KernelConfig& c) { return tile_q(c) / 8; }
constexpr int chunks_per_block(const KernelConfig& c) { return (packets_per_block(c) + kPacketsPerChunk - 1) / kPacketsPerChunk; }
constexpr int chunks_per_warpgroup(const KernelConfig& c) { return blocks_per_warpgroup(c) * chunks_per_block(c); }
constexpr bool parts_are_chunks(const KernelConfig& c, int splits) { return splits <= chunks_per_warpgroup(c); }
constexpr int part_begin(const KernelConfig& c, int cta, int splits) {
  if (!parts_are_chunks(c, splits)) return cta * packets_per_warpgroup(c) / splits;
  const int chunk = cta * chunks_per_warpgroup(c) / splits, block = chunk / chunks_per_block(c);
  return block * packets_per_block(c) + (chunk - block * chunks_per_block(c)) * kPacketsPerChunk;
}
// The inverse: which CTA finishes a packet.
constexpr int part_owner(const KernelConfig& c, int packet, int splits) {
  if (!parts_are_chunks(c, splits)) return ((packet + 1) * splits - 1) / packets_per_warpgroup(c);
  const int chunk = packet / packets_per_block(c) * chunks_per_block(c) + packet % packets_per_block(c) / kPacketsPerChunk;
  return ((chunk + 1) * splits - 1) / chunks_per_warpgroup(c);
}
// All of them, for the launch.
constexpr TileParts tile_parts(const KernelConfig& c, int count) {
  TileParts parts{.count = count, .whole_chunks = parts_are_chunks(c, count)};
  for (int i = 0; i <= count; ++i) parts.begin[i] = static_cast<std::uint8_t>(part_begin(c, i, count));
  return parts;
}

// Whether the ring of stages, idle by then, can take in what the others push.
constexpr bool parts_fit(const KernelConfig& c, int splits) {
  int most = 0;
  for (int cta = 0; cta < splits; ++cta)
    if (const int packets = part_begin(c, cta + 1, splits) - part_begin(c, cta, splits); packets > most) most = packets;
  const int warpgroup_bytes = shared_memory_layout(c).stages * stage_bytes(c) / sharing_warpgroups(c) / 16 * 16;
  return (splits - 1) * most * kPacketBytes <= warpgroup_bytes;
}

}  // namespace sluice
