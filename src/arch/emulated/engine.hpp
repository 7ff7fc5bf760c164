// What the calls of arch/emulated/arch.cuh come down to. Kernels see this header alone; the machine behind it is in machine.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "arch/types.hpp"

namespace sluice::arch::emulated {

// Where a call stands, as std::source_location says it; clang 14 does not understand that of libstdc++ 12.
class Location {
 public:
  static constexpr Location current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) { return {file, line}; }
  constexpr Location() = default;
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }

 private:
  constexpr Location(const char* file, unsigned line) : file_(file), line_(line) {}
  const char* file_ = "";
  unsigned line_ = 0;
};

// threads.cpp: who am I, warps, barriers of threads
int thread_in_cta();
int cta_in_cluster();
int cluster_in_grid();
int cta_in_grid();
int ctas_in_grid();
int clusters_in_grid();
int sm_number();  // the place that the CTA has taken
bool elect_one(const Location& at);
float shuffle_xor(float value, int mask, const Location& at);
std::array<int, 32> values_of_lanes(int value, const char* what, const Location& at);
int value_of_lane(int value, int lane, const Location& at);
void sync_warp(const Location& at);
std::uint32_t transpose_matrix(std::uint32_t word, const Location& at);
void load_matrices(SharedAddress row, std::uint32_t (&matrices)[4], bool transposed, const Location& at);
void named_barrier(int id, int threads, bool waits, const Location& at);
void sync_cta(const Location& at);
void cluster_arrive(bool releases, const Location& at);
void cluster_wait(const Location& at);
void set_register_limit(int registers, const Location& at);
void note_role(const char* role);
void note_barrier(const Barrier* barrier, const char* name, int index);
void note_work(int tile_m, int tile_n, int group, int k_begin, int k_end);

// mbarrier.cpp
void barrier_init(Barrier* barrier, int arrivals, const Location& at);
void fence_barrier_init();
void barrier_arrive(Barrier* barrier, int expect_bytes, const Location& at);
void barrier_arrive_in_cluster(Barrier* barrier, int cta, bool releases, const Location& at);
void barrier_wait(Barrier* barrier, std::uint32_t parity, const Location& at);
bool barrier_has_ended(Barrier* barrier, std::uint32_t parity, const Location& at);

// memory.cpp: ordinary accesses
std::byte* dynamic_shared_memory();
SharedAddress shared_address(const void* pointer);
void store_shared(SharedAddress address, const void* from, int bytes, const Location& at);
void load_shared(SharedAddress address, void* to, int bytes, const Location& at);
std::uint32_t atomic_add_shared(SharedAddress address, std::uint32_t value, const Location& at);  // what was there before
ClusterAddress in_cta(SharedAddress address, int cta);
void load_cluster(ClusterAddress address, void* to, int bytes, const Location& at);
void fence_shared_for_async();
void store_matrices(SharedAddress row, const std::uint32_t* matrices, int count, bool transposed, const Location& at);
void check_global(const void* address, std::size_t bytes, bool writes, const Location& at);
void check_poison(float value, const Location& at);

// flags.cpp: global memory that synchronises
enum class FlagAccess { relaxed, acquire, release, acq_rel };
std::uint32_t load_flag(const std::uint32_t* flag, FlagAccess access, const Location& at);
void store_flag(std::uint32_t* flag, std::uint32_t value, FlagAccess access, const Location& at);
std::uint32_t add_to_flag(std::uint32_t* flag, std::uint32_t value, FlagAccess access, const Location& at);
std::uint32_t or_to_flag(std::uint32_t* flag, std::uint32_t bits, const Location& at);         // relaxed
std::uint64_t add_to_long_flag(std::uint64_t* flag, std::uint64_t value, const Location& at);  // relaxed
std::uint64_t load_long_flag(const std::uint64_t* flag, const Location& at);
void store_long_flag(std::uint64_t* flag, std::uint64_t value, const Location& at);
void wait_for_flag(const std::uint32_t* flag, std::uint32_t value, const Location& at);
void atomic_add_float(float* sum, float value, const Location& at);
// Four words that are there when none of them is `nothing`.
void store_published(std::uint32_t* to, const std::array<std::uint32_t, 4>& words, const Location& at);
std::array<std::uint32_t, 4> load_published(const std::uint32_t* from, std::uint32_t nothing, const Location& at);
void note_global_addition(const void* sum, std::size_t bytes, const Location& at);  // that the caller makes now
void fence_global();
void fence_global_for_async();
void wait_for_predecessor(const Location& at);
void allow_successor();
std::uint64_t clock_cycles();

// copy_engine.cpp
void tma_prefetch(const TensorMap& map, TensorCoordinates from, const Location& at);
void tma_load(void* destination, const TensorMap& map, TensorCoordinates from, Barrier* barrier, std::uint16_t cta_mask,
              const Location& at);
void tma_store(const TensorMap& map, TensorCoordinates to, SharedAddress source, bool adds, const Location& at);
void bulk_prefetch(const void* source, int bytes, const Location& at);
void bulk_load(SharedAddress destination, const void* source, int bytes, Barrier* barrier, const Location& at);
void bulk_store(void* destination, SharedAddress source, int bytes, bool adds, const Location& at);
void bulk_copy_to_cluster(ClusterAddress destination, SharedAddress source, int bytes, ClusterAddress barrier, const Location& at);
void store_async(ClusterAddress destination, const void* from, int bytes, ClusterAddress barrier, const Location& at);
void bulk_commit();
void bulk_wait(int groups, bool read_only, const Location& at);

// tensor_maps.cpp
enum class MapField : std::uint8_t { address, extent, stride };
void replace_in_map(SharedAddress map, MapField field, int direction, std::uint64_t value, const Location& at);
void publish_tensor_map(TensorMap* to, SharedAddress map, const Location& at);
void acquire_tensor_map(const TensorMap& map, const Location& at);

// tensor_core.cpp
enum class Numbers : std::uint8_t { bf16, fp16, e4m3, e5m2 };
struct WgmmaShape {
  Numbers p;
  Numbers q;
  Major p_major;
  Major q_major;
  int columns;
  bool adds = true;  // or overwrites

  bool operator==(const WgmmaShape&) const = default;
};
void wgmma_fence();
void wgmma(WgmmaShape shape, float* d, std::uint64_t p_descriptor, std::uint64_t q_descriptor, const Location& at);
void wgmma(WgmmaShape shape, float* d, const std::uint32_t (&p)[4], std::uint64_t q_descriptor, const Location& at);
void wgmma_commit(const Location& at);
// d += A B of a warp, m16n8k16: the fragments of this lane
void mma(Numbers numbers, float (&d)[4], const std::uint32_t (&a)[4], std::array<std::uint32_t, 2> b, const Location& at);
void wgmma_wait(int groups, const Location& at);

}  // namespace sluice::arch::emulated
