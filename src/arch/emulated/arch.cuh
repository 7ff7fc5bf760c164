// The calls of arch/sm90, on a CPU. Each hands on to the machine (engine.hpp) together with the place it was called from.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "sluice/types.hpp"

#include "arch/code_table.hpp"
#include "arch/emulated/engine.hpp"
#include "arch/emulated/numbers.hpp"
#include "arch/types.hpp"

// The tag keeps these instances of the kernels apart from those that nvcc makes for its host side.
#define SLUICE_DEVICE __attribute__((abi_tag("emulated"))) inline
#define SLUICE_UNROLL
#define SLUICE_NO_UNROLL

namespace sluice::arch {

using emulated::Location;

// threads
SLUICE_DEVICE int thread_in_warpgroup() { return emulated::thread_in_cta() % 128; }
SLUICE_DEVICE int lane() { return emulated::thread_in_cta() % 32; }
SLUICE_DEVICE int warp_in_cta() { return emulated::thread_in_cta() / 32; }
SLUICE_DEVICE int warpgroup_in_cta() { return emulated::thread_in_cta() / 128; }
SLUICE_DEVICE int cta_in_cluster() { return emulated::cta_in_cluster(); }
SLUICE_DEVICE int cluster_in_grid() { return emulated::cluster_in_grid(); }
SLUICE_DEVICE int cta_in_grid() { return emulated::cta_in_grid(); }
SLUICE_DEVICE int ctas_in_grid() { return emulated::ctas_in_grid(); }
SLUICE_DEVICE int clusters_in_grid() { return emulated::clusters_in_grid(); }
SLUICE_DEVICE float shuffle_xor(float value, int mask, Location at = Location::current()) { return emulated::shuffle_xor(value, mask, at); }
SLUICE_DEVICE int from_lane(int value, int lane, Location at = Location::current()) { return emulated::value_of_lane(value, lane, at); }
SLUICE_DEVICE int prefix_sum(int value, Location at = Location::current()) {
  const auto values = emulated::values_of_lanes(value, "prefix_sum", at);
  return std::accumulate(values.begin(), values.begin() + lane() + 1, 0);
}
SLUICE_DEVICE int warp_sum(int value, Location at = Location::current()) {
  const auto values = emulated::values_of_lanes(value, "warp_sum", at);
  return std::accumulate(values.begin(), values.end(), 0);
}
SLUICE_DEVICE int count_lanes(bool value, Location at = Location::current()) { return warp_sum(value ? 1 : 0, at); }
SLUICE_DEVICE int uniform(int value) { return value; }
SLUICE_DEVICE bool elect_one(Location at = Location::current()) { return emulated::elect_one(at); }
SLUICE_DEVICE void sync_warp(Location at = Location::current()) { emulated::sync_warp(at); }
SLUICE_DEVICE void sync_cta(Location at = Location::current()) { emulated::sync_cta(at); }
SLUICE_DEVICE void named_barrier_sync(int id, int threads, Location at = Location::current()) {
  emulated::named_barrier(id, threads, true, at);
}
SLUICE_DEVICE void named_barrier_arrive(int id, int threads, Location at = Location::current()) {
  emulated::named_barrier(id, threads, false, at);
}
SLUICE_DEVICE void cluster_arrive_relaxed(Location at = Location::current()) { emulated::cluster_arrive(false, at); }
SLUICE_DEVICE void cluster_arrive(Location at = Location::current()) { emulated::cluster_arrive(true, at); }
SLUICE_DEVICE void cluster_wait(Location at = Location::current()) { emulated::cluster_wait(at); }
template <int registers>
SLUICE_DEVICE void lower_register_limit(Location at = Location::current()) {
  emulated::set_register_limit(registers, at);
}
template <int registers>
SLUICE_DEVICE void raise_register_limit(Location at = Location::current()) {
  emulated::set_register_limit(registers, at);
}
template <class Word>
SLUICE_DEVICE Word opaque(Word value) {
  return value;
}
SLUICE_DEVICE void compute_first(float&, int&) {}
using emulated::note_barrier;
using emulated::note_role;
using emulated::note_work;

// launch
SLUICE_DEVICE void wait_for_predecessor(Location at = Location::current()) { emulated::wait_for_predecessor(at); }
using emulated::allow_successor;
SLUICE_DEVICE std::uint64_t global_time_ns() { return emulated::clock_cycles(); }
SLUICE_DEVICE std::uint64_t clock_cycles() { return emulated::clock_cycles(); }
SLUICE_DEVICE void settle_barrier(SharedAddress) {}
SLUICE_DEVICE int sm_number() { return emulated::sm_number(); }

// mbarriers
SLUICE_DEVICE void barrier_init(Barrier* barrier, int arrivals, Location at = Location::current()) {
  emulated::barrier_init(barrier, arrivals, at);
}
using emulated::fence_barrier_init;
SLUICE_DEVICE void barrier_arrive(Barrier* barrier, Location at = Location::current()) { emulated::barrier_arrive(barrier, 0, at); }
SLUICE_DEVICE void barrier_arrive_expect_bytes(Barrier* barrier, int bytes, Location at = Location::current()) {
  emulated::barrier_arrive(barrier, bytes, at);
}
SLUICE_DEVICE void barrier_arrive_in_cluster_relaxed(Barrier* barrier, int cta, Location at = Location::current()) {
  emulated::barrier_arrive_in_cluster(barrier, cta, false, at);
}
SLUICE_DEVICE void barrier_arrive_in_cluster(Barrier* barrier, int cta, Location at = Location::current()) {
  emulated::barrier_arrive_in_cluster(barrier, cta, true, at);
}
SLUICE_DEVICE void barrier_wait(Barrier* barrier, std::uint32_t parity, Location at = Location::current()) {
  emulated::barrier_wait(barrier, parity, at);
}
SLUICE_DEVICE bool barrier_has_ended(Barrier* barrier, std::uint32_t parity, Location at = Location::current()) {
  return emulated::barrier_has_ended(barrier, parity, at);
}

// shared memory
using emulated::dynamic_shared_memory;
using emulated::fence_shared_for_async;
using emulated::shared_address;
SLUICE_DEVICE void store_shared(SharedAddress address, float value, Location at = Location::current()) {
  emulated::store_shared(address, &value, sizeof value, at);
  emulated::check_poison(value, at);
}
SLUICE_DEVICE void store_shared(SharedAddress address, float first, float second, Location at = Location::current()) {
  const float both[] = {first, second};
  emulated::store_shared(address, both, sizeof both, at);
  emulated::check_poison(first, at);
  emulated::check_poison(second, at);
}
SLUICE_DEVICE void store_shared(SharedAddress address, const std::uint32_t (&words)[4], Location at = Location::current()) {
  emulated::store_shared(address, words, sizeof words, at);
}
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint32_t (&words)[4], Location at = Location::current()) {
  emulated::load_shared(address, words, sizeof words, at);
}
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint32_t& word, Location at = Location::current()) {
  emulated::load_shared(address, &word, sizeof word, at);
}
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint16_t& bits, Location at = Location::current()) {
  emulated::load_shared(address, &bits, sizeof bits, at);
}
template <int count>
SLUICE_DEVICE void load_shared(SharedAddress address, float (&values)[count], Location at = Location::current()) {
  emulated::load_shared(address, values, sizeof values, at);
}
template <bool transposed, int count>
SLUICE_DEVICE void store_matrices(SharedAddress row, const std::uint32_t (&m)[count], Location at = Location::current()) {
  emulated::store_matrices(row, m, count, transposed, at);
}

// the cluster's shared memory
using emulated::in_cta;
SLUICE_DEVICE void load_cluster(ClusterAddress address, float (&values)[4], Location at = Location::current()) {
  emulated::load_cluster(address, values, sizeof values, at);
}
SLUICE_DEVICE void store_async(ClusterAddress address, const float (&values)[4], ClusterAddress barrier,
                               Location at = Location::current()) {
  emulated::store_async(address, values, sizeof values, barrier, at);
}
SLUICE_DEVICE void bulk_copy_to_cluster(ClusterAddress destination, SharedAddress source, int bytes, ClusterAddress barrier,
                                        Location at = Location::current()) {
  emulated::bulk_copy_to_cluster(destination, source, bytes, barrier, at);
}

// global memory
template <class T>
SLUICE_DEVICE T load_global(const T* source, Location at = Location::current()) {
  emulated::check_global(source, sizeof(T), false, at);
  return *source;
}
template <class T>
SLUICE_DEVICE void store_global(T* destination, const T& value, Location at = Location::current()) {
  emulated::check_global(destination, sizeof(T), true, at);
  *destination = value;
}
SLUICE_DEVICE Floats4 load_global_from_l2(const Floats4* source, Location at = Location::current()) { return load_global(source, at); }
SLUICE_DEVICE void store_release(std::uint32_t* flag, std::uint32_t value, Location at = Location::current()) {
  emulated::store_flag(flag, value, emulated::FlagAccess::release, at);
}
SLUICE_DEVICE void store_relaxed(std::uint32_t* flag, std::uint32_t value, Location at = Location::current()) {
  emulated::store_flag(flag, value, emulated::FlagAccess::relaxed, at);
}
SLUICE_DEVICE std::uint32_t load_acquire(const std::uint32_t* flag, Location at = Location::current()) {
  return emulated::load_flag(flag, emulated::FlagAccess::acquire, at);
}
SLUICE_DEVICE std::uint32_t atomic_add_relaxed(std::uint32_t* counter, std::uint32_t value, Location at = Location::current()) {
  return emulated::add_to_flag(counter, value, emulated::FlagAccess::relaxed, at);
}
SLUICE_DEVICE std::uint32_t atomic_or_relaxed(std::uint32_t* flags, std::uint32_t bits, Location at = Location::current()) {
  return emulated::or_to_flag(flags, bits, at);
}
SLUICE_DEVICE std::uint32_t atomic_add_acq_rel(std::uint32_t* counter, std::uint32_t value, Location at = Location::current()) {
  return emulated::add_to_flag(counter, value, emulated::FlagAccess::acq_rel, at);
}
SLUICE_DEVICE void atomic_add_float(float* sum, float value, Location at = Location::current()) {
  emulated::atomic_add_float(sum, value, at);
}
SLUICE_DEVICE void wait_for_flag(const std::uint32_t* flag, std::uint32_t value, Location at = Location::current()) {
  emulated::wait_for_flag(flag, value, at);
}
using emulated::fence_global;
using emulated::fence_global_for_async;

// the copy engine
SLUICE_DEVICE void prefetch_tensor_map(const TensorMap&) {}
SLUICE_DEVICE void tma_load(void* destination, const TensorMap& map, TensorCoordinates from, Barrier* barrier, CachePolicy,
                            Location at = Location::current()) {
  emulated::tma_load(destination, map, from, barrier, static_cast<std::uint16_t>(1u << cta_in_cluster()), at);
}
SLUICE_DEVICE void tma_prefetch(const TensorMap& map, TensorCoordinates from, Location at = Location::current()) {
  emulated::tma_prefetch(map, from, at);
}
SLUICE_DEVICE void tma_load_multicast(void* destination, const TensorMap& map, TensorCoordinates from, Barrier* barrier,
                                      std::uint16_t cta_mask, CachePolicy, Location at = Location::current()) {
  emulated::tma_load(destination, map, from, barrier, cta_mask, at);
}
SLUICE_DEVICE void tma_store(const TensorMap& map, TensorCoordinates to, SharedAddress source, Location at = Location::current()) {
  emulated::tma_store(map, to, source, false, at);
}
SLUICE_DEVICE void tma_reduce_add(const TensorMap& map, TensorCoordinates to, SharedAddress source, Location at = Location::current()) {
  emulated::tma_store(map, to, source, true, at);
}
SLUICE_DEVICE void bulk_load(SharedAddress destination, const void* source, int bytes, Barrier* barrier,
                             Location at = Location::current()) {
  emulated::bulk_load(destination, source, bytes, barrier, at);
}
SLUICE_DEVICE void bulk_load(SharedAddress destination, const void* source, int bytes, Barrier* barrier, CachePolicy,
                             Location at = Location::current()) {
  emulated::bulk_load(destination, source, bytes, barrier, at);
}
SLUICE_DEVICE void bulk_prefetch(const void* source, int bytes, Location at = Location::current()) {
  emulated::bulk_prefetch(source, bytes, at);
}
SLUICE_DEVICE void bulk_store(void* destination, SharedAddress source, int bytes, Location at = Location::current()) {
  emulated::bulk_store(destination, source, bytes, false, at);
}
SLUICE_DEVICE void bulk_reduce_add(float* destination, SharedAddress source, int bytes, Location at = Location::current()) {
  emulated::bulk_store(destination, source, bytes, true, at);
}
using emulated::bulk_commit;
template <int groups>
SLUICE_DEVICE void bulk_wait_read(Location at = Location::current()) {
  emulated::bulk_wait(groups, true, at);
}
template <int groups>
SLUICE_DEVICE void bulk_wait(Location at = Location::current()) {
  emulated::bulk_wait(groups, false, at);
}

// tensor maps made by kernels
SLUICE_DEVICE void replace_address(SharedAddress map, const void* data, Location at = Location::current()) {
  emulated::replace_in_map(map, emulated::MapField::address, 0, reinterpret_cast<std::uintptr_t>(data), at);
}
template <int direction>
SLUICE_DEVICE void replace_extent(SharedAddress map, std::uint32_t elems, Location at = Location::current()) {
  emulated::replace_in_map(map, emulated::MapField::extent, direction, elems, at);
}
template <int direction>
SLUICE_DEVICE void replace_stride(SharedAddress map, std::uint64_t bytes, Location at = Location::current()) {
  emulated::replace_in_map(map, emulated::MapField::stride, direction, bytes, at);
}
SLUICE_DEVICE void publish_tensor_map(TensorMap* to, SharedAddress map, Location at = Location::current()) {
  emulated::publish_tensor_map(to, map, at);
}
SLUICE_DEVICE void acquire_tensor_map(const TensorMap& map, Location at = Location::current()) { emulated::acquire_tensor_map(map, at); }

// Words come as early as they may: a reader who has not waited for the barrier is seen all the same.
SLUICE_DEVICE void copy_word_async(SharedAddress destination, const float* source, bool inside, Location at = Location::current()) {
  const float word = inside ? load_global(source, at) : 0.0f;
  emulated::store_shared(destination, &word, sizeof word, at);
}
SLUICE_DEVICE void barrier_arrive_when_copied(Barrier* barrier, Location at = Location::current()) {
  emulated::barrier_arrive(barrier, 0, at);
}

// wgmma
SLUICE_DEVICE std::uint64_t matrix_descriptor(const void* start, int leading_bytes, int stride_bytes) {
  return encode_matrix_descriptor(shared_address(start), leading_bytes, stride_bytes);
}
using emulated::wgmma_fence;
SLUICE_DEVICE void wgmma_commit(Location at = Location::current()) { emulated::wgmma_commit(at); }
template <int groups>
SLUICE_DEVICE void wgmma_wait(Location at = Location::current()) {
  emulated::wgmma_wait(groups, at);
}
template <DataType type, Major p_major, Major q_major, int registers>
SLUICE_DEVICE void wgmma(float (&d)[registers], std::uint64_t p_descriptor, std::uint64_t q_descriptor, Location at = Location::current()) {
  static_assert(type == DataType::bf16 || type == DataType::fp16);
  constexpr auto kNumbers = type == DataType::bf16 ? emulated::Numbers::bf16 : emulated::Numbers::fp16;
  emulated::wgmma({kNumbers, kNumbers, p_major, q_major, registers * 2}, d, p_descriptor, q_descriptor, at);
}

template <DataType type, bool adds, int registers>
SLUICE_DEVICE void wgmma(float (&d)[registers], const std::uint32_t (&p)[4], std::uint64_t q_descriptor,
                         Location at = Location::current()) {
  static_assert(type == DataType::bf16 || type == DataType::fp16);
  constexpr auto kNumbers = type == DataType::bf16 ? emulated::Numbers::bf16 : emulated::Numbers::fp16;
  emulated::wgmma({kNumbers, kNumbers, Major::k, Major::k, registers * 2, adds}, d, p, q_descriptor, at);
}

template <int registers>
SLUICE_DEVICE void pin_registers(float (&)[registers]) {}
template <DataType type_p, DataType type_q, bool adds, int registers>
SLUICE_DEVICE void wgmma_8_bit(float (&d)[registers], std::uint64_t p_descriptor, std::uint64_t q_descriptor,
                               Location at = Location::current()) {
  static_assert(is_fp8(type_p) && is_fp8(type_q));
  constexpr auto kNumbers = [](DataType type) { return type == DataType::e4m3 ? emulated::Numbers::e4m3 : emulated::Numbers::e5m2; };
  emulated::wgmma({kNumbers(type_p), kNumbers(type_q), Major::k, Major::k, registers * 2, adds}, d, p_descriptor, q_descriptor, at);
}

template <DataType type, bool adds, int registers>
SLUICE_DEVICE void wgmma_8_bit(float (&d)[registers], const std::uint32_t (&p)[4], std::uint64_t q_descriptor,
                               Location at = Location::current()) {
  static_assert(type == DataType::e4m3);
  constexpr auto kNumbers = emulated::Numbers::e4m3;
  emulated::wgmma({kNumbers, kNumbers, Major::k, Major::k, registers * 2, adds}, d, p, q_descriptor, at);
}

// codes of 4 bits
SLUICE_DEVICE CodeTable code_table(std::uint32_t zero) {
  return code_table_of(static_cast<int>(zero < kLargestZeroPoint ? zero : kLargestZeroPoint));
}
SLUICE_DEVICE void look_up_codes(std::uint32_t word, const CodeTable& low, const CodeTable& high, std::uint32_t& first,
                                 std::uint32_t& second) {
  const auto number = [word](const CodeTable& table, int code) {
    const std::uint32_t which = word >> 4 * code & 15;
    return (table.words[which / 4] >> which % 4 * 8 & 0xff) << code % 4 * 8;
  };
  first = second = 0;
  for (int code = 0; code < 4; ++code) {
    first |= number(low, code);
    second |= number(high, code + 4);
  }
}
SLUICE_DEVICE std::uint32_t in_both_halves(std::uint32_t bits) { return (bits & 0xffff) * 0x10001; }
SLUICE_DEVICE std::uint32_t and_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return (a & b) | c; }
template <DataType type>
SLUICE_DEVICE float as_number(std::uint32_t bits) {
  const auto low = static_cast<std::uint16_t>(bits);
  return type == DataType::bf16 ? emulated::bf16_to_float(low) : emulated::fp16_to_float(low);
}
template <DataType type>
SLUICE_DEVICE std::uint32_t as_bits(float number) {
  return type == DataType::bf16 ? emulated::float_to_bf16(number) : emulated::float_to_fp16(number);
}
template <DataType type>
SLUICE_DEVICE std::uint32_t multiply_add_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const auto half = [&](int shift) {
    return as_bits<type>(std::fma(as_number<type>(a >> shift), as_number<type>(b >> shift), as_number<type>(c >> shift)));
  };
  return half(0) | half(16) << 16;
}
template <DataType type>
SLUICE_DEVICE std::uint32_t multiply_pairs(std::uint32_t a, std::uint32_t b) {
  return multiply_add_pairs<type>(a, b, 0x80008000);
}

// numbers
SLUICE_DEVICE std::uint16_t float_to_bf16(float x, Location at = Location::current()) {
  emulated::check_poison(x, at);
  return emulated::float_to_bf16(x);
}
SLUICE_DEVICE std::uint16_t float_to_fp16(float x, Location at = Location::current()) {
  emulated::check_poison(x, at);
  return emulated::float_to_fp16(x);
}
SLUICE_DEVICE float fused_multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
SLUICE_DEVICE float as_float(int x) { return std::bit_cast<float>(x); }
SLUICE_DEVICE int lowest_bit(std::uint32_t bits) { return std::countr_zero(bits); }
SLUICE_DEVICE float bf16_to_float(std::uint16_t bits) { return emulated::bf16_to_float(bits); }
SLUICE_DEVICE float fp16_to_float(std::uint16_t bits) { return emulated::fp16_to_float(bits); }
SLUICE_DEVICE std::uint32_t pack_bf16(float low, float high, Location at = Location::current()) {
  return static_cast<std::uint32_t>(float_to_bf16(low, at)) | static_cast<std::uint32_t>(float_to_bf16(high, at)) << 16;
}
SLUICE_DEVICE std::uint32_t pack_fp16(float low, float high, Location at = Location::current()) {
  return static_cast<std::uint32_t>(float_to_fp16(low, at)) | static_cast<std::uint32_t>(float_to_fp16(high, at)) << 16;
}

}  // namespace sluice::arch

#include "arch/codes.cuh"
