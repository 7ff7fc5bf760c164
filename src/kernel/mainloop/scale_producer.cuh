// Fetches the scales of FP8 operands into the ring, a stage's along with its k-tile: a word for each vector of a tile and each 128 of K.
// Where those of neighbouring vectors are neighbours, and start where the copy engine can address them, it fetches a run of them for one
// instruction; else each lane of a warp asks for words of its own. (256 words cost a warp almost as long as the tensor cores need for a
// stage of 256 x 128 x 128: 842 instead of 811 us for 4096 x 7168 x 16384, H200, 22 November 2026.)
#pragma once

#include "core/groups.hpp"
#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/mainloop/scaled_pipeline.cuh"
#include "kernel/mainloop/short_tile.cuh"

namespace sluice {

template <KernelConfig config>
class ScaleProducer {
 public:
  using Ring = ScaledPipeline<config>;

  // Used by all lanes of a warp.
  static constexpr bool kAlone = false;

  SLUICE_DEVICE ScaleProducer(const MainloopParams& params, const Ring& ring)
      : ScaleProducer(params.scale_p, params.scale_q, params.k, ring, params.p.by_blocks) {}
  // has_short_boxes: rows of P come by blocks, and what short boxes leave of a block (rows_of_short_box()) is to be zeros.
  SLUICE_DEVICE ScaleProducer(const ScaleParams& p, const ScaleParams& q, const std::int32_t& k, const Ring& ring, bool has_short_boxes)
      : scale_p_(p), scale_q_(q), k_(k), ring_(ring), has_short_boxes_(has_short_boxes) {}

  // By the warp, before the barrier that lets the roles begin: operands whose scales do not follow K have ones for good, and runs leave
  // what is behind the matrix as it was.
  SLUICE_DEVICE void fill_with_ones() const {
    typename Ring::Position at;
    for (; at.stage < Ring::kLayout.stages; ++at.stage)
      for (int block = 0; block < scale_blocks_per_stage(config); ++block) {
        if (!all_come_as_words(scale_p_)) fill<OperandTile<config, Operand::p>::kVectors>(ring_.scales_p(at, block));
        if (!all_come_as_words(scale_q_)) fill<OperandTile<config, Operand::q>::kVectors>(ring_.scales_q(at, block));
      }
    arch::fence_shared_for_async();
  }

  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, bool first) const {
    const int first_block = tile.k_begin * kBlocks + (computes_groups_along_k(config) ? tile.first_k >> kLog2ScaleBlock : 0);
    const Words<Operand::p> p(scale_p_, tile, first_block);
    const Words<Operand::q> q(scale_q_, tile, first_block);
    const bool chunks = is_short(config) || (kBlocks == 1 && q.for_chunks());
    if (chunks && p.run_bytes() > 0) return load_rows_and_chunks<Way::run>(at, tile, p, q, first);
    if (first) arch::wait_for_predecessor();
    if (chunks && p.one_by_one())
      load_rows_and_chunks<Way::neighbours>(at, tile, p, q, false);
    else if constexpr (is_short(config))
      load_rows_and_chunks<Way::apart>(at, tile, p, q, false);
    else
      load_stages(at, tile, p, q);
  }

 private:
  static constexpr int kBlocks = scale_blocks_per_stage(config);
  static_assert(!is_short(config) || (kBlocks == 1 && !swapped(config)), "short kernels know scales of rows beside those of blocks alone");
  // How the scales of a tile's rows come: together, or word by word, those of neighbours side by side or some stride apart.
  enum class Way { run, neighbours, apart };

  // Rows of P between the last short box and the end of its block. Nothing else is written there while the stages hold this tile.
  class ZeroRows {
   public:
    SLUICE_DEVICE ZeroRows(const WorkTile& tile, bool has_short_boxes) {
      if constexpr (kRows > 0) {
        if (!has_short_boxes) return;
        first_ = end_of<kRows>(tile);
        end_ = end_of<kWgmmaRows>(tile);
      }
    }
    // By the warp. `stage`: which of the tile's.
    SLUICE_DEVICE void write(const Ring& ring, const typename Ring::Position& at, int stage) const {
      if (kRows == 0 || first_ == end_ || stage >= Ring::kLayout.stages) return;
      constexpr std::uint32_t kZeros[4] = {};
      const arch::SharedAddress tile = arch::shared_address(ring.stage_p(at));
      SLUICE_NO_UNROLL
      for (int byte = first_ + arch::lane() * 16; byte < end_; byte += 32 * 16)
        arch::store_shared(tile + static_cast<std::uint32_t>(byte), kZeros);
      arch::fence_shared_for_async();
      arch::sync_warp();
    }

   private:
    static constexpr int kRows = rows_of_short_box(config);
    static_assert(kRows == 0 || OperandTile<config, Operand::p>::kSlabs == 1, "a block's rows lie behind one another");
    // Of the tile's boxes, or blocks, of so many rows that have any.
    template <int rows>
    static SLUICE_DEVICE int end_of(const WorkTile& tile) {
      return blocks_with_rows<rows>(tile, 0, tile_p(config) / rows) * rows * kSwizzleBytes;
    }
    int first_ = 0, end_ = 0;  // in bytes
  };

  // What most products ask for: a scale for each row and 128 of K of A, and one for each 128 x 128 of B. This warp has no cycle to spare
  // (tiles of 128 x 128 x 128 are multiplied in 512), so its loop has nothing in it that is the same in each turn.
  template <Way way, class WordsOfP, class WordsOfQ>
  SLUICE_DEVICE void load_rows_and_chunks(typename Ring::Position& at, const WorkTile& tile, const WordsOfP& p, const WordsOfQ& q,
                                          bool first) const {
    constexpr bool run = way == Way::run;
    const float* rows = run ? p.run() : way == Way::neighbours ? p.run() + arch::lane() : p.word_of_lane_apart();
    const std::int64_t apart = way == Way::neighbours ? 32 : 32 * scale_p_.strides.vector;
    const float* chunk = q.word_of_lane();
    const bool asks = q.lane_asks(), inside = q.word_inside(), fences = run && over_words();
    const int left_of_p = p.left_from_lane(), count = tile.k_end - tile.k_begin, wait_at = first ? count : 0;
    const ZeroRows zeros(tile, has_short_boxes_);
    SLUICE_NO_UNROLL
    for (int left = count; left > 0; --left) {
      ring_.wait_empty(at);
      zeros.write(ring_, at, count - left);
      if (fences) arch::fence_shared_for_async();
      arch::Barrier* const full = ring_.full_barrier(at);
      if (left == wait_at) arch::wait_for_predecessor();
      if (arch::elect_one()) {
        arch::barrier_arrive_expect_bytes(full, run ? p.run_bytes() : 0);
        if (run) arch::bulk_load(ring_.scales_p(at, 0), rows, p.run_bytes(), full);
      }
      if constexpr (!run) {
        const float* from = rows;
        SLUICE_UNROLL
        for (int word = 0; word < tile_p(config); word += 32, from += apart)
          p.copy_word(ring_.scales_p(at, 0), word, from, word < left_of_p);
      }
      if (asks) q.copy_word(ring_.scales_q(at, 0), 0, chunk, inside);
      arch::barrier_arrive_when_copied(full);
      rows += scale_p_.strides.k_block;
      chunk += scale_q_.strides.k_block;
      at.advance();
    }
  }

  // All else.
  template <class WordsOfP, class WordsOfQ>
  SLUICE_DEVICE void load_stages(typename Ring::Position& at, const WorkTile& tile, WordsOfP p, WordsOfQ q) const {
    const ZeroRows zeros(tile, has_short_boxes_);
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      ring_.wait_empty(at);
      zeros.write(ring_, at, k_tile - tile.k_begin);
      const int blocks_left = kBlocks == 1 ? 1 : (k_ + kScaleBlockElems - 1) / kScaleBlockElems - k_tile * kBlocks;
      if ((over_words() || blocks_left % kBlocks != 0) && p.run_bytes() + q.run_bytes() > 0) arch::fence_shared_for_async();
      arch::Barrier* const full = ring_.full_barrier(at);
      if (arch::elect_one()) {
        const int blocks = blocks_left < kBlocks ? blocks_left : kBlocks;
        arch::barrier_arrive_expect_bytes(full, (p.run_bytes() + q.run_bytes()) * blocks);
      }
      arch::sync_warp();
      SLUICE_UNROLL
      for (int block = 0; block < kBlocks; ++block) {
        p.copy(ring_.scales_p(at, block), block < blocks_left, full);
        q.copy(ring_.scales_q(at, block), block < blocks_left, full);
      }
      arch::barrier_arrive_when_copied(full);
      at.advance();
    }
  }

  // A run overwrites what came by ordinary stores: words of a tile that began elsewhere, and (load_stages()) zeros where K ended inside a
  // stage.
  SLUICE_DEVICE bool over_words() const { return scale_p_.anywhere || scale_q_.anywhere; }

  static SLUICE_DEVICE bool all_come_as_words(const ScaleParams& scales) { return scales.strides.along_k && !scales.runs; }

  template <int vectors>
  static SLUICE_DEVICE void fill(arch::SharedAddress scales) {
    for (int i = arch::lane(); i < vectors; i += 32) arch::store_shared(scales + static_cast<std::uint32_t>(i) * sizeof(float), 1.0f);
  }

  // The words of one operand's tile: where those of the next block of K are, and how they come.
  template <Operand operand>
  class Words {
   public:
    SLUICE_DEVICE Words(const ScaleParams& scales, const WorkTile& tile, int k_block)
        : scales_(scales),
          from_(scales.data + tile.group * scales.strides.batch + k_block * scales.strides.k_block),
          first_(Tile::first_vector(tile)),
          in_runs_(scales.runs && (!scales.anywhere || first_ % kRunWords == 0)),
          run_bytes_(in_runs_ ? words_inside() * static_cast<int>(sizeof(float)) : 0) {}

    // That the copy engine brings of a block of K, and from where.
    SLUICE_DEVICE int run_bytes() const { return run_bytes_; }
    SLUICE_DEVICE const float* run() const { return from_ + first_; }

    // Whether neighbours come one by one; how many there are from this lane's on.
    SLUICE_DEVICE bool one_by_one() const { return scales_.adjacent && !in_runs_; }
    SLUICE_DEVICE int left_from_lane() const { return scales_.vectors - first_ - arch::lane(); }

    SLUICE_DEVICE const float* word_of_lane_apart() const { return from_ + offset_of(first_ + arch::lane()); }

    // Whether a scale is for a chunk of Q's vectors; each is in the ring kChunkCopies times, each brought by another lane.
    SLUICE_DEVICE bool for_chunks() const { return operand == Operand::q && scales_.strides.block_shift > 0; }
    SLUICE_DEVICE bool lane_asks() const { return arch::lane() < kChunkWords; }
    SLUICE_DEVICE bool word_inside() const { return vector_of_lane() < scales_.vectors; }
    SLUICE_DEVICE const float* word_of_lane() const { return from_ + (word_inside() ? offset_of(vector_of_lane()) : 0); }

    // All that the next block of K has.
    SLUICE_DEVICE void copy(arch::SharedAddress to, bool inside_k, arch::Barrier* full) {
      if (in_runs_ && inside_k) {
        if (run_bytes_ > 0 && arch::elect_one()) arch::bulk_load(to, run(), run_bytes_, full);
      } else if (for_chunks()) {
        if (lane_asks()) copy_word(to, 0, word_of_lane(), inside_k && word_inside());
      } else if (scales_.strides.along_k) {
        SLUICE_UNROLL
        for (int at = 0; at < Tile::kVectors; at += 32) {
          const int vector = first_ + at + arch::lane();
          const bool inside = inside_k && vector < scales_.vectors;
          if (at + arch::lane() < Tile::kVectors) copy_word(to, at, from_ + (inside ? offset_of(vector) : 0), inside);
        }
      }
      from_ += scales_.strides.k_block;
    }

    // By this lane, of those 32 that begin `first` behind `to`.
    static SLUICE_DEVICE void copy_word(arch::SharedAddress to, int first, const float* word, bool inside) {
      arch::copy_word_async(to + static_cast<std::uint32_t>(first + arch::lane()) * sizeof(float), word, inside);
    }

   private:
    using Tile = OperandTile<config, operand>;
    static constexpr int kChunkWords = Tile::kVectors / kScaleChunk<config> * kChunkCopies;
    static_assert(operand == Operand::p || kChunkWords <= 32, "a word for each lane");

    SLUICE_DEVICE int words_inside() const {
      const int left = scales_.vectors - first_;
      return left < 0 ? 0 : left < Tile::kVectors ? left : Tile::kVectors;
    }

    SLUICE_DEVICE int vector_of_lane() const { return first_ + arch::lane() / kChunkCopies * kScaleChunk<config>; }

    // 32 bits are enough for the scales of one matrix (core/problem.cpp).
    SLUICE_DEVICE int offset_of(int vector) const {
      return (vector >> scales_.strides.block_shift) * static_cast<int>(scales_.strides.vector);
    }

    const ScaleParams& scales_;
    const float* from_;
    int first_;
    bool in_runs_;
    int run_bytes_;
  };

  const ScaleParams& scale_p_;
  const ScaleParams& scale_q_;
  const std::int32_t& k_;
  const Ring& ring_;
  bool has_short_boxes_;
};

}  // namespace sluice
