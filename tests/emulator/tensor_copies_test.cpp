// Tensor maps, and boxes of tensors on their way into and out of shared memory.
#include <algorithm>
#include <cstring>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

constexpr int kBarrier = 32768;
constexpr std::uint8_t kUntouched = 0xa5;

// A tensor of bytes in three dimensions, with gaps behind rows and matrices.
struct Bytes {
  std::int64_t inner, outer, batch, pitch, matrix;
  std::vector<std::uint8_t> memory;

  Bytes(std::int64_t inner_bytes, std::int64_t rows, std::int64_t matrices)
      : inner(inner_bytes), outer(rows), batch(matrices), pitch((inner_bytes + 15) / 16 * 16 + 32), matrix(pitch * rows + 48) {
    memory.resize(static_cast<std::size_t>(matrix * batch) + 16);
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(1 + i * 7 % 251);
  }
  std::uint8_t* start() { return memory.data() + (16 - reinterpret_cast<std::uintptr_t>(memory.data()) % 16) % 16; }
  bool holds(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return x >= 0 && y >= 0 && z >= 0 && x < inner && y < outer && z < batch;
  }
  std::uint8_t& at(std::int64_t x, std::int64_t y, std::int64_t z) { return start()[z * matrix + y * pitch + x]; }
};

struct Box {
  int x_bytes, y, z;
  int swizzle_bytes;
  arch::TensorCoordinates corner;
  emulated::Element element = emulated::Element::byte;
};

arch::TensorMap map_of(Bytes& tensor, const Box& box) {
  const int size = size_bytes(box.element);
  return emulated::encode_tensor_map({.data = tensor.start(),
                                      .element = box.element,
                                      .extents = {tensor.inner / size, tensor.outer, tensor.batch},
                                      .strides_bytes = {tensor.pitch, tensor.matrix},
                                      .box = {box.x_bytes / size, box.y, box.z},
                                      .swizzle_bytes = box.swizzle_bytes});
}

// Where byte x of row `row` of a box lies: rows follow one another; the number of its 128-byte line turns a packet within its row.
int place_in_box(int x, int row, const Box& box) {
  if (box.swizzle_bytes == 0) return row * box.x_bytes + x;
  const int packets = box.swizzle_bytes / 16, line = row * box.x_bytes / 128;
  return row * box.x_bytes + ((x / 16) ^ (line % packets)) * 16 + x % 16;
}

std::vector<Box> boxes() {
  std::vector<Box> all;
  for (const int swizzle : {0, 32, 64, 128})
    for (const arch::TensorCoordinates corner :
         {arch::TensorCoordinates{0, 0, 0}, {32, 3, 1}, {-16, -2, 0}, {64, 11, -1}, {80, 13, 2}, {400, 0, 0}, {0, -100, 0}}) {
      all.push_back({swizzle == 0 ? 48 : swizzle, 9, 2, swizzle, corner});
      all.push_back({swizzle == 0 ? 16 : swizzle, 64, 1, swizzle, {corner.inner / 2, corner.outer, corner.batch}, emulated::Element::fp16});
    }
  all.push_back({256, 8, 1, 0, {0, 0, 0}});
  all.push_back({128, 16, 1, 128, {-1, 2, 0}, emulated::Element::fp32});
  return all;
}

std::string describe(const Box& b) {
  return std::to_string(b.x_bytes) + "x" + std::to_string(b.y) + "x" + std::to_string(b.z) + " swizzle " + std::to_string(b.swizzle_bytes) +
         " from " + std::to_string(b.corner.inner) + ", " + std::to_string(b.corner.outer) + ", " + std::to_string(b.corner.batch);
}

TEST(TensorLoad, BringsBoxesSwizzledAndFillsWithZeros) {
  Bytes tensor(92, 17, 3);
  for (const Box& box : boxes()) {
    SCOPED_TRACE(describe(box));
    const arch::TensorMap map = map_of(tensor, box);
    const emulated::Launch launch{.threads_per_cta = 128, .shared_memory_bytes = kBarrier + 8, .buffers = {input("tensor", tensor.memory)}};
    const int bytes = box.x_bytes * box.y * box.z, size = size_bytes(box.element);
    std::vector<std::uint8_t> got(static_cast<std::size_t>(bytes));
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      ASSERT_EQ(objection(launch, with_seed(seed),
                          [&] {
                            arch::Barrier* const full = make_barrier(kBarrier, 1);
                            if (thread() != 0) return arch::barrier_wait(full, 0);
                            arch::barrier_arrive_expect_bytes(full, bytes);
                            arch::tma_load(arch::dynamic_shared_memory(), map, box.corner, full, arch::CachePolicy::evict_normal);
                            arch::barrier_wait(full, 0);
                            for (int i = 0; i < bytes; i += 4) {
                              const float word = load_shared_float(shared(i));
                              std::memcpy(&got[static_cast<std::size_t>(i)], &word, 4);
                            }
                          }),
                "");
      for (int z = 0; z < box.z; ++z)
        for (int y = 0; y < box.y; ++y)
          for (int x = 0; x < box.x_bytes; ++x) {
            const std::int64_t from_x = box.corner.inner * size + x, from_y = box.corner.outer + y, from_z = box.corner.batch + z;
            const int expected = tensor.holds(from_x, from_y, from_z) ? tensor.at(from_x, from_y, from_z) : 0;
            ASSERT_EQ(got[static_cast<std::size_t>(place_in_box(x, z * box.y + y, box))], expected) << x << ", " << y << ", " << z;
          }
    }
  }
}

// Shared memory filled with a pattern, by ordinary stores of one thread.
void fill_shared(int bytes) {
  for (int i = 0; i < bytes; i += 16) {
    std::uint8_t pattern[16];
    for (int e = 0; e < 16; ++e) pattern[e] = static_cast<std::uint8_t>((i + e) * 13 % 241 + 1);
    store_words(shared(i), pattern);
  }
}
std::uint8_t pattern_at(int offset) { return static_cast<std::uint8_t>(offset * 13 % 241 + 1); }

TEST(TensorStore, WritesBoxesAndNothingOutside) {
  for (const Box& box : boxes()) {
    SCOPED_TRACE(describe(box));
    Bytes tensor(96, 17, 3);
    const arch::TensorMap map = map_of(tensor, box);
    const emulated::Launch launch{.threads_per_cta = 128, .shared_memory_bytes = kBarrier, .buffers = {output("tensor", tensor.memory)}};
    const int bytes = box.x_bytes * box.y * box.z, size = size_bytes(box.element);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      std::fill(tensor.memory.begin(), tensor.memory.end(), kUntouched);
      ASSERT_EQ(objection(launch, with_seed(seed),
                          [&] {
                            if (thread() != 0) return;
                            fill_shared(bytes);
                            arch::fence_shared_for_async();
                            arch::tma_store(map, box.corner, shared(0));
                            arch::bulk_commit();
                            arch::bulk_wait_read<0>();
                          }),
                "");
      Bytes expected(96, 17, 3);
      std::fill(expected.memory.begin(), expected.memory.end(), kUntouched);
      for (int z = 0; z < box.z; ++z)
        for (int y = 0; y < box.y; ++y)
          for (int x = 0; x < box.x_bytes; ++x) {
            const std::int64_t to_x = box.corner.inner * size + x, to_y = box.corner.outer + y, to_z = box.corner.batch + z;
            if (expected.holds(to_x, to_y, to_z)) expected.at(to_x, to_y, to_z) = pattern_at(place_in_box(x, z * box.y + y, box));
          }
      ASSERT_EQ(std::memcmp(tensor.start(), expected.start(), static_cast<std::size_t>(tensor.matrix * tensor.batch)), 0);
    }
  }
}

TEST(TensorStore, RefusesRowsThatEndInsideAPacket) {
  Bytes tensor(92, 17, 3);
  const arch::TensorMap map = map_of(tensor, {64, 8, 1, 64, {0, 0, 0}});
  expect_objection({.threads_per_cta = 128, .shared_memory_bytes = 4096, .buffers = {output("tensor", tensor.memory)}},
                   "stores into a tensor whose rows of 92 bytes end inside a packet of 16", [&] {
                     if (thread() == 0) arch::tma_store(map, {0, 0, 0}, shared(0));
                   });
}

// Several CTAs add their boxes to the same place: sums of small integers are exact in any order.
template <emulated::Element element>
void reduce() {
  using Type = std::conditional_t<element == emulated::Element::fp32, float, std::uint16_t>;
  const auto encode = [](float x) -> Type {
    if constexpr (element == emulated::Element::fp32) return x;
    return static_cast<Type>(element == emulated::Element::bf16 ? emulated::float_to_bf16(x) : emulated::float_to_fp16(x));
  };
  constexpr int kCtas = 5, kColumns = 64 / sizeof(Type), kRows = 8;
  alignas(16) static Type sums[kColumns * kRows];
  const arch::TensorMap map = emulated::encode_tensor_map(
      {.data = sums, .element = element, .extents = {kColumns, kRows, 1}, .strides_bytes = {64, 512}, .box = {kColumns, kRows, 1}});
  const emulated::Launch launch{.clusters = kCtas,
                                .threads_per_cta = 128,
                                .shared_memory_bytes = 4096,
                                .buffers = {{.name = "sums", .data = sums, .bytes = sizeof sums, .writable = true}}};
  expect_right(
      launch,
      [&] {
        if (thread() != 0) return;
        EXPECT_EQ(arch::clusters_in_grid(), kCtas);
        Type row[kColumns * kRows];
        for (int i = 0; i < kColumns * kRows; ++i) row[i] = encode(static_cast<float>(arch::cluster_in_grid() + i % 7));
        for (int i = 0; i < 512; i += 16) store_words(shared(i), reinterpret_cast<const char*>(row) + i);
        arch::fence_shared_for_async();
        arch::tma_reduce_add(map, {0, 0, 0}, shared(0));
        arch::bulk_commit();
        arch::bulk_wait_read<0>();
      },
      [&] {
        for (int i = 0; i < kColumns * kRows; ++i) EXPECT_EQ(sums[i], encode(static_cast<float>(10 + kCtas * (i % 7))));
        std::memset(sums, 0, sizeof sums);
      });
}
TEST(TensorReduce, AddsInEachType) {
  reduce<emulated::Element::fp32>();
  reduce<emulated::Element::bf16>();
  reduce<emulated::Element::fp16>();
}

// Four CTAs fetch a quarter of a tile each, for those in the mask.
TEST(Multicast, BringsSlicesToEveryCtaOfTheMask) {
  Bytes tensor(64, 32, 1);
  const arch::TensorMap map = map_of(tensor, {64, 8, 1, 64, {0, 0, 0}});
  const emulated::Launch launch{.clusters = 2,
                                .ctas_per_cluster = 4,
                                .threads_per_cta = 128,
                                .shared_memory_bytes = kBarrier + 8,
                                .buffers = {input("tensor", tensor.memory)}};
  for (const std::uint16_t mask : {0b1111, 0b0101, 0b1000}) {
    const Kernel kernel = [&] {
      const int me = arch::cta_in_cluster();
      arch::Barrier* const full = make_barrier(kBarrier, 1, true);
      if (thread() == 0 && (mask >> me & 1) != 0) arch::barrier_arrive_expect_bytes(full, 4 * 512);
      if (thread() == 0)
        arch::tma_load_multicast(arch::dynamic_shared_memory() + me * 512, map, {0, me * 8, 0}, full, mask, arch::CachePolicy::evict_last);
      if ((mask >> me & 1) != 0) {
        arch::barrier_wait(full, 0);
        const int row = thread() / 4, packet = thread() % 4;
        const float got = load_shared_float(shared(row * 64 + (packet ^ (row % 8 / 2)) * 16));
        float expected;
        std::memcpy(&expected, &tensor.at(packet * 16, row, 0), 4);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(expected));
      }
      sync_cluster();
    };
    expect_right(launch, kernel);
  }
  for (const std::uint16_t mask : {0, 0b10000})
    expect_objection(launch, "multicasts to mask (0|16) in a cluster of 4", [&] {
      arch::Barrier* const full = make_barrier(kBarrier, 1, true);
      arch::tma_load_multicast(arch::dynamic_shared_memory(), map, {0, 0, 0}, full, mask, arch::CachePolicy::evict_last);
    });
}

TEST(TensorMap, OfNothing) {
  arch::TensorMap empty{};
  expect_objection({.threads_per_cta = 128, .shared_memory_bytes = kBarrier + 8}, "uses a tensor map that was never filled in", [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    arch::tma_load(arch::dynamic_shared_memory(), empty, {0, 0, 0}, full, arch::CachePolicy::evict_normal);
  });
}

TEST(TensorMap, EachRuleIsChecked) {
  alignas(16) static char memory[4096];
  const emulated::TensorShape good{
      .data = memory, .extents = {64, 8, 2}, .strides_bytes = {128, 1024}, .box = {64, 8, 1}, .swizzle_bytes = 128};
  EXPECT_NO_THROW(emulated::encode_tensor_map(good));
  const auto refused = [&](const char* rule, auto change) {
    emulated::TensorShape bad = good;
    change(bad);
    try {
      emulated::encode_tensor_map(bad);
      ADD_FAILURE() << "accepted, against: " << rule;
    } catch (const emulated::EmulationError& wrong) {
      EXPECT_NE(std::string(wrong.what()).find(rule), std::string::npos) << wrong.what() << "\nwanted: " << rule;
    }
  };
  refused("the address must be a multiple of 16", [](auto& t) { t.data = memory + 8; });
  refused("the address must be a multiple of 16", [](auto& t) { t.data = nullptr; });
  refused("extent 0 must be from 1 to 2^32", [](auto& t) { t.extents[0] = 0; });
  refused("must be from 1 to 2^32", [](auto& t) { t.extents[1] = (std::int64_t{1} << 32) + 1; });
  refused("box extent 0 must be from 1 to 256", [](auto& t) { t.box[2] = 0; });
  refused("box extent 257 must be from 1 to 256", [](auto& t) { t.box[1] = 257; });
  refused("stride 136 must be a multiple of 16 under 2^40", [](auto& t) { t.strides_bytes[0] = 136; });
  refused("must be a multiple of 16 under 2^40", [](auto& t) { t.strides_bytes[1] = std::int64_t{1} << 40; });
  refused("stride -16", [](auto& t) { t.strides_bytes[0] = -16; });
  refused("a box's rows of 24 bytes must be multiples of 16", [](auto& t) { t.box[0] = 12; });
  refused("swizzles are over 32, 64 or 128 bytes", [](auto& t) { t.swizzle_bytes = 16; });
  refused("a box's rows of 128 bytes must fit in the swizzle of 64", [](auto& t) { t.swizzle_bytes = 64; });
}

}  // namespace
}  // namespace sluice::test
