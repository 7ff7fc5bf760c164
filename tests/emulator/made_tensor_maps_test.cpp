// Tensor maps that a kernel makes from one of the host's: fields replaced, published, acquired.
#include <numeric>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

constexpr int kMapBytes = sizeof(arch::TensorMap), kBoxAt = 1024, kBarrier = 4096;

// Two matrices of bytes, and room for a map, in global memory.
struct Memory {
  struct alignas(128) Map {
    arch::TensorMap map;
  };
  std::vector<std::uint8_t> small = std::vector<std::uint8_t>(16 * 16 + 16);
  std::vector<std::uint8_t> large = std::vector<std::uint8_t>(64 * 80 + 16);
  std::vector<Map> maps = std::vector<Map>(2);

  Memory() { std::iota(large.begin(), large.end(), std::uint8_t{1}); }
  static std::uint8_t* aligned(std::vector<std::uint8_t>& memory) {
    return memory.data() + (16 - reinterpret_cast<std::uintptr_t>(memory.data()) % 16) % 16;
  }
  // Of 16 rows of 16 bytes, in boxes of 8 rows of 32.
  arch::TensorMap of_small() {
    return emulated::encode_tensor_map(
        {.data = aligned(small), .element = emulated::Element::byte, .extents = {16, 16, 1}, .strides_bytes = {16, 16}, .box = {32, 8, 1}});
  }
  emulated::Launch launch() {
    return {.threads_per_cta = 128,
            .shared_memory_bytes = kBarrier + 8,
            .buffers = {output("maps", maps), input("small", small), input("large", large)}};
  }
};

void copy_to_shared(const arch::TensorMap& map) {
  if (arch::lane() < kMapBytes / 16) store_words(shared(16 * arch::lane()), &map.opaque[2 * arch::lane()]);
  arch::sync_warp();
}

// The map of `rows` rows of `columns` bytes, 80 bytes apart, of the large matrix. By a warp.
void make_map(Memory& memory, const arch::TensorMap& from, std::uint32_t columns, std::uint32_t rows) {
  copy_to_shared(from);
  if (arch::lane() == 0) {
    arch::replace_address(shared(0), Memory::aligned(memory.large));
    arch::replace_extent<0>(shared(0), columns);
    arch::replace_extent<1>(shared(0), rows);
    arch::replace_stride<1>(shared(0), 80);
    arch::replace_stride<2>(shared(0), 80);
  }
  arch::publish_tensor_map(&memory.maps[1].map, shared(0));
}

TEST(MadeTensorMap, IsOfTheMatrixThatItWasMadeFor) {
  Memory memory;
  const arch::TensorMap from = memory.of_small();
  std::vector<std::uint8_t> got(32 * 8);
  expect_right(
      memory.launch(),
      [&] {
        arch::Barrier* const full = make_barrier(kBarrier, 1);
        if (thread() / 32 == 0) make_map(memory, from, 70, 6);
        arch::sync_cta();
        if (thread() != 64) return arch::barrier_wait(full, 0);
        arch::acquire_tensor_map(memory.maps[1].map);
        arch::barrier_arrive_expect_bytes(full, 32 * 8);
        arch::tma_load(arch::dynamic_shared_memory() + kBoxAt, memory.maps[1].map, {48, 1, 0}, full, arch::CachePolicy::evict_normal);
        arch::barrier_wait(full, 0);
        for (int i = 0; i < 32 * 8; i += 4) {
          const float word = load_shared_float(shared(kBoxAt + i));
          std::memcpy(&got[static_cast<std::size_t>(i)], &word, 4);
        }
      },
      [&] {
        for (int row = 0; row < 8; ++row)
          for (int x = 0; x < 32; ++x)
            ASSERT_EQ(got[static_cast<std::size_t>(32 * row + x)],
                      48 + x < 70 && row + 1 < 6 ? Memory::aligned(memory.large)[80 * (row + 1) + 48 + x] : 0)
                << row << ", " << x;
      });
}

TEST(MadeTensorMap, MustBeAcquiredByTheThreadThatUsesIt) {
  Memory memory;
  const arch::TensorMap from = memory.of_small();
  for (const bool by_another : {false, true})
    expect_objection(memory.launch(), "uses a tensor map in global memory that this thread has not acquired", [&] {
      arch::Barrier* const full = make_barrier(kBarrier, 1);
      if (thread() / 32 == 0) make_map(memory, from, 70, 6);
      arch::sync_cta();
      if (by_another && thread() == 65) arch::acquire_tensor_map(memory.maps[1].map);
      arch::sync_cta();
      if (thread() == 64)
        arch::tma_load(arch::dynamic_shared_memory() + kBoxAt, memory.maps[1].map, {0, 0, 0}, full, arch::CachePolicy::evict_normal);
    });
}

TEST(MadeTensorMap, KeepsTheRulesOfOthers) {
  Memory memory;
  const arch::TensorMap from = memory.of_small();
  const auto refused = [&](const char* expected, auto change) {
    expect_objection(memory.launch(), expected, [&] {
      if (thread() >= 32) return;
      copy_to_shared(from);
      if (arch::lane() == 0) change();
    });
  };
  refused("an address into a tensor map that is null or no multiple of 16", [] { arch::replace_address(shared(0), nullptr); });
  refused("an address into a tensor map that is null or no multiple of 16",
          [&] { arch::replace_address(shared(0), Memory::aligned(memory.large) + 8); });
  refused("puts extent 0 into a tensor map", [] { arch::replace_extent<1>(shared(0), 0); });
  refused("puts stride 72 into a tensor map", [] { arch::replace_stride<1>(shared(0), 72); });
  refused("must be a multiple of 16 under 2\\^40", [] { arch::replace_stride<2>(shared(0), std::uint64_t{1} << 40); });
  refused("not a multiple of 128", [] { arch::replace_extent<0>(shared(64), 5); });
  expect_objection(memory.launch(), "at an address that is no multiple of 128", [&] {
    if (thread() >= 32) return;
    copy_to_shared(from);
    arch::publish_tensor_map(reinterpret_cast<arch::TensorMap*>(reinterpret_cast<std::byte*>(memory.maps.data()) + 64), shared(0));
  });
  expect_objection(memory.launch(), "replaces a field of a tensor map that was never filled in", [&] {
    if (thread() >= 32) return;
    copy_to_shared({});
    if (arch::lane() == 0) arch::replace_extent<0>(shared(0), 5);
  });
}

}  // namespace
}  // namespace sluice::test
