// What distinguishes one compiled kernel from another. A structural type: it is also the kernels' template argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/types.hpp"

namespace sluice {

// cooperative: consumer warpgroups share a tile, each has rows of its own. pingpong: each owns one. streaming: each warp loads and
// multiplies its own part of K. sliced_k: consumer warpgroups share a tile of 64 rows of P, each multiplies every third k-tile, the first
// adds up.
enum class KernelSchedule : std::uint8_t { cooperative, pingpong, streaming, sliced_k };

// Which operand stands on the 64-row side of wgmma. rows_of_a: A. columns_of_b: B, so that few rows of A do not pay for 64.
enum class OperandOrder : std::uint8_t { rows_of_a, columns_of_b };

// tma: the tensor memory accelerator, 16-byte aligned pointers and strides. threads: ordinary loads, any alignment.
enum class LoadPath : std::uint8_t { tma, threads };

// What a kernel is compiled for. all: whatever it can do. Some are compiled a second time for less, a fifth as long: plain for plain
// products, groups for groups of rows in whole tiles (launch/scope.hpp). run() takes these by itself; plans name those for all.
enum class KernelScope : std::uint8_t { all, plain, groups };

struct KernelConfig {
  DataType type_a = DataType::bf16;
  DataType type_b = DataType::bf16;
  Layout layout_a = Layout::row_major;
  Layout layout_b = Layout::column_major;
  KernelSchedule schedule = KernelSchedule::cooperative;
  OperandOrder order = OperandOrder::rows_of_a;
  LoadPath load = LoadPath::tma;
  int tile_m = 0;  // work tile, in rows and columns of D
  int tile_n = 0;
  int tile_k = 64;      // elements of K in a pipeline stage, a multiple of 128 bytes
  int cluster_m = 1;    // CTAs of a cluster along M: they share tiles of B
  int cluster_n = 1;    // along N: they share tiles of A
  int ctas_per_sm = 1;  // that fit at once
  KernelScope scope = KernelScope::all;

  bool operator==(const KernelConfig&) const = default;
};

const char* to_string(KernelSchedule schedule);  // "cooperative", "pingpong", "streaming", "sliced-k"
const char* to_string(OperandOrder order);       // "rows-of-a", "columns-of-b"
const char* to_string(LoadPath load);            // "tma", "threads"

std::optional<KernelSchedule> parse_kernel_schedule(std::string_view text);
std::optional<OperandOrder> parse_operand_order(std::string_view text);
std::optional<LoadPath> parse_load_path(std::string_view text);

constexpr bool is_short(const KernelConfig& config) { return config.scope != KernelScope::all; }
constexpr int cluster_size(const KernelConfig& config) { return config.cluster_m * config.cluster_n; }

// Stable and unique: "bf16_rc_coop_128x256x64_c2x1" ("e4m3xe5m2_rc_..." where types differ), with "_x2" (CTAs per SM), "_swap" and
// "_anyalign" where they apply.
std::string name(const KernelConfig& config);

}  // namespace sluice
