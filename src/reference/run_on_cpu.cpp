// The plan's work, tile by tile, on CPU threads: as slow as plain loops are, and as easy to check by eye.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/run.hpp"

#include "core/check_arguments.hpp"
#include "core/check_group_sizes.hpp"
#include "core/check_plan.hpp"
#include "core/scale_layout.hpp"
#include "reference/dequantised.hpp"
#include "reference/general_groups.hpp"
#include "reference/number_conversion.hpp"
#include "reference/parallel.hpp"
#include "reference/scale_of_block.hpp"
#include "scheduler/group_table.hpp"
#include "scheduler/single_items.hpp"

namespace sluice {
namespace {

// A matrix seen with its strides: element (row, column) is number first + row * row_stride + column * column_stride of those at `base`.
struct MatrixView {
  const void* base = nullptr;
  std::int64_t first = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  MatrixView at(std::int64_t row, std::int64_t column) const {
    return {base, first + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

MatrixView matrix(const void* base, Layout layout, std::int64_t leading, std::int64_t batch_offset) {
  const bool rows = layout == Layout::row_major;
  return {base, batch_offset, rows ? leading : 1, rows ? 1 : leading};
}

// A block of a matrix as dense fp32 rows of `pitch` elements. The unit stride is spelt out where there is one: it can be vectorised.
template <class Bits, class Convert>
void pack(const MatrixView& from, std::int64_t rows, std::int64_t columns, float* to, std::int64_t pitch, Convert convert) {
  const Bits* const elements = static_cast<const Bits*>(from.base) + from.first;
  if (from.column_stride == 1) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) to[r * pitch + c] = convert(elements[r * from.row_stride + c]);
  } else {
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t r = 0; r < rows; ++r) to[r * pitch + c] = convert(elements[r * from.row_stride + c * from.column_stride]);
  }
}

void pack(const MatrixView& from, DataType type, std::int64_t rows, std::int64_t columns, float* to, std::int64_t pitch) {
  switch (type) {
    case DataType::bf16:
      return pack<std::uint16_t>(from, rows, columns, to, pitch, [](std::uint16_t bits) { return bf16_to_float(bits); });
    case DataType::fp16:
      return pack<std::uint16_t>(from, rows, columns, to, pitch, [](std::uint16_t bits) { return fp16_to_float(bits); });
    case DataType::e4m3:
      return pack<std::uint8_t>(from, rows, columns, to, pitch, [](std::uint8_t bits) { return e4m3_to_float(bits); });
    case DataType::e5m2:
      return pack<std::uint8_t>(from, rows, columns, to, pitch, [](std::uint8_t bits) { return e5m2_to_float(bits); });
    case DataType::fp32:  // weights of 4 bits, dequantised
      return pack<float>(from, rows, columns, to, pitch, [](float number) { return number; });
    case DataType::int4:  // dequantised before
      break;
  }
}

// An operand's scales: those that change along K, or those of whole vectors. 1 where it has none of the kind asked for.
class Scales {
 public:
  Scales(const float* data, Scaling scaling, const ScaleStrides& strides)
      : data_(scaling == Scaling::none ? nullptr : data), strides_(strides) {}

  float of_block(std::int64_t batch, std::int64_t vector, std::int64_t k) const {
    return data_ != nullptr && strides_.along_k ? data_[strides_.at(batch, vector, k)] : 1.0f;
  }
  float of_vector(std::int64_t batch, std::int64_t vector) const { return of_vectors() ? data_[strides_.at(batch, vector, 0)] : 1.0f; }
  bool of_vectors() const { return data_ != nullptr && !strides_.along_k; }

 private:
  const float* data_;
  ScaleStrides strides_;
};

float load(const void* base, DataType type, std::int64_t index) {
  if (type == DataType::fp32) return static_cast<const float*>(base)[index];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(base)[index];
  return type == DataType::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

void store(void* base, DataType type, std::int64_t index, float value) {
  if (type == DataType::fp32)
    static_cast<float*>(base)[index] = value;
  else
    static_cast<std::uint16_t*>(base)[index] = type == DataType::bf16 ? float_to_bf16(value) : float_to_fp16(value);
}

float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0.0f ? 0.0f : x;  // a NaN stays one
    case Activation::gelu_tanh:
      return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
    case Activation::silu:
      return x / (1.0f + std::exp(-x));
  }
  return x;
}

// The rows and columns of D that one CTA tile has, clipped at the edges.
struct Block {
  std::int64_t m, n, batch;
  std::int64_t rows, columns;
};

// The sums of tiles in pieces, handed from piece to piece in the order of k, so that the result does not depend on who was faster.
// Threads take items in rising order, and a piece waits for an item of a lower number: one that a thread has taken before.
class Turnstiles {
 public:
  // The sums of the pieces before this one, when they are complete: one vector for each CTA of the cluster.
  std::vector<std::vector<float>>& wait_for_turn(const WorkTile& piece) {
    std::unique_lock lock(mutex_);
    Tile& tile = tiles_[piece.split_tile];  // references into a map stay good
    moved_.wait(lock, [&] { return tile.done == piece.peer; });
    return tile.sums;
  }
  void hand_on(const WorkTile& piece) {
    const std::scoped_lock lock(mutex_);
    if (piece.peer + 1 == piece.peers)
      tiles_.erase(piece.split_tile);
    else
      ++tiles_[piece.split_tile].done;
    moved_.notify_all();
  }

 private:
  struct Tile {
    std::int32_t done = 0;
    std::vector<std::vector<float>> sums;
  };
  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::int32_t, Tile> tiles_;
};

// What one thread needs to compute tiles.
class TileWorker {
 public:
  TileWorker(const Plan& plan, const GemmArguments& arguments, std::int64_t short_sum_elems, Turnstiles& turnstiles)
      : short_sum_elems_(short_sum_elems),
        problem_(plan.problem),
        kernel_(plan.kernel),
        arguments_(arguments),
        turnstiles_(turnstiles),
        scales_a_(arguments.scale_a, plan.problem.scaling_a, scale_strides_a(plan.problem)),
        scales_b_(arguments.scale_b, plan.problem.scaling_b, scale_strides_b(plan.problem)),
        strides_d_(scale_strides_d(plan.problem)),
        pitch_(plan.kernel.tile_n) {
    a_.resize(static_cast<std::size_t>(kernel_.tile_m) * static_cast<std::size_t>(kernel_.tile_k));
    b_.resize(static_cast<std::size_t>(kernel_.tile_k * pitch_));
    accumulators_.resize(static_cast<std::size_t>(kernel_.tile_m * pitch_));
    shorts_.resize(static_cast<std::size_t>(pitch_));
    results_.resize(static_cast<std::size_t>(pitch_));
  }

  void compute(const WorkTile& tile) {
    if (tile.peers <= 1)
      return for_each_cta([&](int cta_m, int cta_n) {
        const Block block = block_of(tile, cta_m, cta_n);
        multiply(block, tile);
        write_out(block);
      });
    std::vector<std::vector<float>> mine;
    for_each_cta([&](int cta_m, int cta_n) {
      multiply(block_of(tile, cta_m, cta_n), tile);
      mine.push_back(accumulators_);
    });
    std::vector<std::vector<float>>& sums = turnstiles_.wait_for_turn(tile);
    if (tile.peer == 0)
      sums = std::move(mine);
    else
      for (std::size_t cta = 0; cta < mine.size(); ++cta)
        std::transform(sums[cta].begin(), sums[cta].end(), mine[cta].begin(), sums[cta].begin(), std::plus<>());
    if (tile.peer + 1 == tile.peers) {
      std::size_t cta = 0;
      for_each_cta([&](int cta_m, int cta_n) {
        accumulators_ = sums[cta++];
        write_out(block_of(tile, cta_m, cta_n));
      });
    }
    turnstiles_.hand_on(tile);
  }

 private:
  template <class Body>
  void for_each_cta(Body&& body) const {
    for (int cta_n = 0; cta_n < kernel_.cluster_n; ++cta_n)
      for (int cta_m = 0; cta_m < kernel_.cluster_m; ++cta_m) body(cta_m, cta_n);
  }

  // The part of a work tile that falls to the CTA (cta_m, cta_n) of the cluster: nothing, for one that only fills the cluster up.
  Block block_of(const WorkTile& tile, int cta_m, int cta_n) const {
    Block block;
    block.m = tile.first_row + std::int64_t{tile.tile_m + cta_m} * kernel_.tile_m;
    block.n = std::int64_t{tile.tile_n + cta_n} * kernel_.tile_n;
    block.batch = tile.group;
    block.rows = std::min<std::int64_t>(kernel_.tile_m, tile.row_end - block.m);
    block.columns = std::min<std::int64_t>(kernel_.tile_n, problem_.n - block.n);
    if (block.rows <= 0 || block.columns <= 0) block.rows = block.columns = 0;
    return block;
  }

  void multiply(const Block& block, const WorkTile& tile) {
    std::fill(accumulators_.begin(), accumulators_.end(), 0.0f);
    if (!reads_a_and_b(problem_) || block.rows == 0) return;
    for (std::int64_t k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile)
      add_k_tile(block, tile.first_k + k_tile * kernel_.tile_k, tile.end_k);
    scale_vectors(block);
  }

  // FP8 in blocks of K, each of which is summed up by itself.
  void add_k_tile(const Block& block, std::int64_t begin, std::int64_t end_k) {
    const std::int64_t end = std::min<std::int64_t>(begin + kernel_.tile_k, end_k);
    const std::int64_t step = is_fp8(problem_.type_a) ? std::min<std::int64_t>(short_sum_elems_, kernel_.tile_k) : kernel_.tile_k;
    for (std::int64_t k = begin; k < end; k += step) add_block_of_k(block, k, std::min(step, end - k));
  }

  void add_block_of_k(const Block& block, std::int64_t k, std::int64_t depth) {
    const MatrixView a = matrix(arguments_.a, problem_.layout_a, problem_.lda, block.batch * problem_.batch_stride_a);
    const MatrixView b = matrix(arguments_.b, problem_.layout_b, problem_.ldb, block.batch * problem_.batch_stride_b);
    pack(a.at(block.m, k), problem_.type_a, block.rows, depth, a_.data(), kernel_.tile_k);
    pack(b.at(k, block.n), problem_.type_b, depth, block.columns, b_.data(), pitch_);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const float* const a_row = a_.data() + row * kernel_.tile_k;
      float* const sums = accumulators_.data() + row * pitch_;
      if (!is_fp8(problem_.type_a)) {
        add_row(a_row, depth, block.columns, sums);
        continue;
      }
      std::fill(shorts_.begin(), shorts_.end(), 0.0f);
      add_row(a_row, depth, block.columns, shorts_.data());
      promote(block, row, k, sums);
    }
  }

  void promote(const Block& block, std::int64_t row, std::int64_t k, float* sums) const {
    const float scale = scales_a_.of_block(block.batch, block.m + row, k);
    for (std::int64_t column = 0; column < block.columns; ++column)
      sums[column] += scale * scales_b_.of_block(block.batch, block.n + column, k) * shorts_[static_cast<std::size_t>(column)];
  }

  // By the scales that do not change along K.
  void scale_vectors(const Block& block) {
    if (!scales_a_.of_vectors() && !scales_b_.of_vectors()) return;
    for (std::int64_t row = 0; row < block.rows; ++row)
      for (std::int64_t column = 0; column < block.columns; ++column)
        accumulators_[static_cast<std::size_t>(row * pitch_ + column)] *=
            scales_a_.of_vector(block.batch, block.m + row) * scales_b_.of_vector(block.batch, block.n + column);
  }

  // Four elements of K at a time keep the sums in registers; each sum still adds them one by one, in order.
  void add_row(const float* a, std::int64_t depth, std::int64_t columns, float* sums) const {
    const float* b = b_.data();
    std::int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      const float *b0 = b + k * pitch_, *b1 = b0 + pitch_, *b2 = b1 + pitch_, *b3 = b2 + pitch_;
      for (std::int64_t column = 0; column < columns; ++column)
        sums[column] = sums[column] + a[k] * b0[column] + a[k + 1] * b1[column] + a[k + 2] * b2[column] + a[k + 3] * b3[column];
    }
    for (; k < depth; ++k)
      for (std::int64_t column = 0; column < columns; ++column) sums[column] += a[k] * b[k * pitch_ + column];
  }

  void write_out(const Block& block) {
    const Epilogue& epilogue = problem_.epilogue;
    const DataType type = problem_.type_d;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const std::int64_t c_row = block.batch * problem_.batch_stride_c + (block.m + row) * problem_.ldc + block.n;
      const std::int64_t d_row = block.batch * problem_.batch_stride_d + (block.m + row) * problem_.ldd + block.n;
      for (std::int64_t column = 0; column < block.columns; ++column) {
        float value = epilogue.alpha * accumulators_[static_cast<std::size_t>(row * pitch_ + column)];
        if (reads_c(problem_)) value += epilogue.beta * load(arguments_.c, type, c_row + column);
        if (epilogue.bias == Bias::per_row) value += load(arguments_.bias, bias_type(type), block.m + row);
        if (epilogue.bias == Bias::per_column) value += load(arguments_.bias, bias_type(type), block.n + column);
        if (epilogue.bias == Bias::per_group_column)
          value += load(arguments_.bias, bias_type(type), block.batch * problem_.n + block.n + column);
        results_[static_cast<std::size_t>(column)] = activate(epilogue.activation, value);
      }
      if (is_fp8(type))
        quantise_row(block, row, d_row);
      else
        for (std::int64_t column = 0; column < block.columns; ++column)
          store(arguments_.d, type, d_row + column, results_[static_cast<std::size_t>(column)]);
    }
  }

  // Of blocks that begin at multiples of 128 columns, where each 128 have a scale (check_plan() sees to it).
  void quantise_row(const Block& block, std::int64_t row, std::int64_t d_row) const {
    for (std::int64_t first = 0; first < block.columns; first += kScaleBlockElems) {
      const std::int64_t end = std::min<std::int64_t>(first + kScaleBlockElems, block.columns);
      const std::int64_t place = strides_d_.at(block.batch, block.m + row, block.n + first);
      float scale = problem_.scaling_d == Scaling::per_tensor ? arguments_.scale_d[place] : 1.0f;
      if (finds_scales(problem_)) {
        float largest = 0;
        for (std::int64_t column = first; column < end; ++column) {
          const float magnitude = std::abs(results_[static_cast<std::size_t>(column)]);
          if (magnitude > largest) largest = magnitude;  // a NaN never is
        }
        arguments_.scale_d[place] = scale = scale_of_block(problem_.type_d, largest);
      }
      const float inverse = 1.0f / scale;
      for (std::int64_t column = first; column < end; ++column) {
        const float scaled = results_[static_cast<std::size_t>(column)] * inverse;
        static_cast<std::uint8_t*>(arguments_.d)[d_row + column] =
            problem_.type_d == DataType::e4m3 ? float_to_e4m3(scaled) : float_to_e5m2(scaled);
      }
    }
  }

  const std::int64_t short_sum_elems_;
  const GemmProblem& problem_;
  const KernelConfig& kernel_;
  const GemmArguments& arguments_;
  Turnstiles& turnstiles_;
  const Scales scales_a_, scales_b_;
  const ScaleStrides strides_d_;
  const std::int64_t pitch_;
  std::vector<float> a_, b_, accumulators_;
  std::vector<float> shorts_;   // FP8: the short sums of one row
  std::vector<float> results_;  // of one row
};

// The items of a plan's schedule, when the sizes of its groups are at hand.
class Items {
 public:
  Items(const Plan& plan, const GemmArguments& arguments) : plan_(plan), sizes_(arguments.groups), schedule_(plan.scheduler) {
    if (!is_grouped(plan.problem)) return;
    groups_.emplace(plan.problem, arguments.groups, plan.kernel.tile_m * plan.kernel.cluster_m);
    schedule_ = with_cluster_rows(schedule_, groups_->cluster_rows());
  }
  std::int32_t count() const { return item_count(schedule_); }
  WorkTile at(std::int32_t item) const {
    const TilePiece piece = piece_at(schedule_, item);
    const GemmProblem& p = plan_.problem;
    WorkTile tile{.peers = 0};
    if (piece.peers > 0) tile = groups_ ? groups_->place(schedule_, piece) : TileOrder<PlainDivisor>(schedule_).place(piece);
    if (!groups_) tile.row_end = static_cast<std::int32_t>(p.m);
    tile.end_k = static_cast<std::int32_t>(p.k);
    if (is_grouped_along_k(p)) give_k(schedule_, plan_.kernel.tile_k, range_of_group(p, sizes_, tile.group), tile);
    return tile;
  }

 private:
  const Plan& plan_;
  const std::int32_t* sizes_;
  SchedulerParams schedule_;
  std::optional<GroupTable> groups_;
};

}  // namespace

Status run_on_cpu(const Plan& given, const GemmArguments& given_arguments, int threads, const Progress& progress) {
  if (Status s = check_plan(given); !s) return s;
  if (Status s = check_arguments(given, given_arguments); !s) return s;
  if (is_empty(given.problem)) return Nothing{};
  if (is_general(given.problem)) return run_groups_on_cpu(given, given_arguments, threads, progress);
  if (Status s = check_group_sizes(given.problem, given_arguments.groups); !s) return s;
  Plan plan = given;
  GemmArguments arguments = given_arguments;
  const Dequantised weights(plan.problem, arguments, threads);

  const Items list(plan, arguments);
  const std::int32_t items = list.count();
  std::atomic<std::int64_t> done{0};
  Turnstiles turnstiles;
  parallel(items, thread_count(threads, items), [&](auto& next, int thread) {
    TileWorker worker(plan, arguments, weights.short_sum_elems(), turnstiles);
    for (std::int64_t item = next(); item >= 0; item = next()) {
      const WorkTile tile = list.at(static_cast<std::int32_t>(item));
      if (tile.peers > 0) worker.compute(tile);
      const std::int64_t so_far = done.fetch_add(1, std::memory_order_relaxed) + 1;
      // Only the caller's own thread reports: never two at once, never backwards.
      if (thread == 0 && progress) progress(static_cast<double>(so_far) / items);
    }
  });
  if (progress) progress(1.0);
  return Nothing{};
}

}  // namespace sluice
