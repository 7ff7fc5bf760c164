// What a launch passes to a GEMM kernel. Filled in by src/launch/, read by the policies, each its own part.
#pragma once

#include <cstdint>

#include "sluice/schedule.hpp"
#include "sluice/types.hpp"

#include "arch/types.hpp"
#include "kernel/group_params.cuh"
#include "kernel/place_params.cuh"
#include "kernel/reduction/reduction_params.cuh"
#include "kernel/scale_params.cuh"
#include "kernel/w4_params.cuh"
#include "scheduler/items.hpp"

namespace sluice {

// One operand, as both load paths see it.
struct OperandParams {
  arch::TensorMap map, map_last;  // LoadPath::tma; of the box with which the last tile ends
  arch::CachePolicy policy;
  const void* data;  // LoadPath::threads, and weights of 4 bits
  std::int64_t leading_elems;
  std::int64_t batch_stride_elems;  // bytes, of weights of 4 bits
  std::int32_t vectors;             // rows of A or columns of B
  std::int32_t batch_step;          // 1, or 0 when one matrix serves the whole batch
  std::int32_t stage_bytes;         // that arrive through the copy engine: less than the tile's where a tile is wider than the matrix
  bool whole_tiles;  // the map's third direction is K, in slabs of one swizzled row, and not the batch: one box is the tile of a stage
  bool by_blocks, ends_early;  // boxes behind a group's end are left out; the last tile's end with the operand (core/load_boxes.hpp)
  bool clips_k;   // the map's second and third direction both are K, so that boxes end with their group (launch/bind_groups.hpp)
  bool constant;  // may be read before the kernel before this one has finished
};

struct MainloopParams {
  OperandParams p;
  OperandParams q;
  ScaleParams scale_p;
  ScaleParams scale_q;
  W4Params w4;  // where P is weights of 4 bits
  std::int32_t k;
};

// How results leave. copy_engine: rounded in registers, staged in shared memory, stored by the copy engine. elementwise: staged in fp32,
// then single elements with C, bias and activation, at any alignment. rounded: single elements, of streaming kernels, with none of these.
enum class StorePath : std::uint8_t { copy_engine, elementwise, rounded };

struct EpilogueParams {
  arch::TensorMap map_d;       // StorePath::copy_engine: boxes of a chunk,
  arch::TensorMap map_d_rest;  // and of the last chunk, if it is narrower
  const void* c;
  void* d;
  const void* bias;
  std::int64_t ldc_elems;
  std::int64_t ldd_elems;
  std::int64_t batch_stride_c_elems;
  std::int64_t batch_stride_d_elems;
  std::int32_t m;
  std::int32_t n;
  float alpha;
  float beta;
  DataType type_d;
  Bias bias_kind;
  Activation activation;
  StorePath path;
  bool clips_rows;  // groups of rows end within a tile: see launch/bind_groups.hpp
  std::int32_t batch_rows;
  // Every row starts at a multiple of four elements' bytes, so that several at a time can be moved.
  bool aligned_c;
  bool aligned_d;
  bool aligned_bias;
  ResultScaleParams scale_d;
};

struct GemmParams {
  MainloopParams mainloop;
  ReductionParams reduction;
  EpilogueParams epilogue;
  SchedulerParams scheduler;
  Schedule<Reciprocal> schedule;  // the same, worked out; of groups of rows as if all were full
  PlaceParams places;
  GroupParams groups;
  bool early_successor;  // CTAs of the next kernel may move in where these move out
};

}  // namespace sluice
