// The tensor cores: every type, layout and source of operands against a plain product, and what may not happen while they work.
#include <algorithm>
#include <cmath>
#include <random>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

using arch::Major;
using emulated::Numbers;

constexpr int kRows = 64;
constexpr int kQ = 65536;  // byte offset of Q in shared memory
const emulated::Launch kLaunch{.threads_per_cta = 128, .shared_memory_bytes = 131072};

bool is_8_bit(Numbers n) { return n == Numbers::e4m3 || n == Numbers::e5m2; }
int bytes_of(Numbers n) { return is_8_bit(n) ? 1 : 2; }
int depth_of(Numbers n) { return is_8_bit(n) ? 32 : 16; }

// Small integers are exact in every format.
std::uint16_t encode(Numbers type, int value) {
  const auto magnitude = static_cast<float>(std::abs(value));
  switch (type) {
    case Numbers::bf16:
      return emulated::float_to_bf16(static_cast<float>(value));
    case Numbers::fp16:
      return emulated::float_to_fp16(static_cast<float>(value));
    case Numbers::e5m2:
      return static_cast<std::uint16_t>(emulated::float_to_fp16(static_cast<float>(value)) >> 8);
    case Numbers::e4m3:
      for (std::uint16_t bits = 0; bits < 0x7f; ++bits)
        if (emulated::e4m3_to_float(static_cast<std::uint8_t>(bits)) == magnitude) return value < 0 ? bits | 0x80 : bits;
  }
  return 0;
}

// An operand of one instruction as it lies in shared memory.
struct Operand {
  Numbers type;
  Major major = Major::k;
  int vectors = kRows;
  int swizzle_bytes = 128;    // 16: none
  std::vector<int> values{};  // vectors x depth
  std::vector<std::uint8_t> image{};

  int value(int vector, int k) const { return values[static_cast<std::size_t>(vector * depth_of(type) + k)]; }
  // The first 32 bytes of K of rows of `swizzle_bytes`; not swizzled, two columns of packets, one after the other.
  int place(int vector, int k) const {
    if (major == Major::vector) {
      const int line = vector / 64 * 64 + k, packet = vector % 64 / 8;  // blocks of 64 vectors by up to 64 k
      return line * 128 + (packet ^ (line % 8)) * 16 + vector % 8 * 2;
    }
    const int byte = k * bytes_of(type), packet = byte / 16;
    if (swizzle_bytes == 16) return packet * vectors * 16 + vector * 16 + byte % 16;
    const int packets = swizzle_bytes / 16, line = vector * swizzle_bytes / 128;
    return vector * swizzle_bytes + (packet ^ (line % packets)) * 16 + byte % 16;
  }
  int bytes() const { return major == Major::vector ? (vectors + 63) / 64 * 64 * 128 : vectors * std::max(swizzle_bytes, 32); }
  std::uint64_t descriptor(int start) const {
    const std::uint64_t code = swizzle_bytes == 128 ? 1 : swizzle_bytes == 64 ? 2 : swizzle_bytes == 32 ? 3 : 0;
    const int leading = major == Major::vector ? 64 * 128 : swizzle_bytes == 16 ? vectors * 16 : 16;
    const int stride = major == Major::vector ? 1024 : 8 * swizzle_bytes;
    return static_cast<std::uint64_t>(shared(start) >> 4) | static_cast<std::uint64_t>(leading >> 4) << 16 |
           static_cast<std::uint64_t>(stride >> 4) << 32 | code << 62;
  }
  void fill(std::mt19937& random) {
    for (int i = 0; i < vectors * depth_of(type); ++i) values.push_back(static_cast<int>(random() % 7) - 3);
    lay_out();
  }
  void lay_out() {
    image.assign(static_cast<std::size_t>(bytes()), 0);
    for (int v = 0; v < vectors; ++v)
      for (int k = 0; k < depth_of(type); ++k) {
        const std::uint16_t bits = encode(type, value(v, k));
        std::memcpy(&image[static_cast<std::size_t>(place(v, k))], &bits, static_cast<std::size_t>(bytes_of(type)));
      }
  }
  // By all threads, through ordinary stores.
  void write(int start) const {
    for (int i = thread() * 16; i < bytes(); i += 128 * 16) store_words(shared(start + i), &image[static_cast<std::size_t>(i)]);
  }
};

int row_of(int r) { return thread() / 32 * 16 + r / 2 % 2 * 8 + thread() % 32 / 4; }
int column_of(int r) { return r / 4 * 8 + thread() % 4 * 2 + r % 2; }

// P Q added to 100 row + column, twice: below 2^13, so that 14 bits hold every term and every sum.
template <int columns>
void multiply_and_check(Operand p, Operand q, bool p_in_registers) {
  q.vectors = columns;
  std::mt19937 random(static_cast<unsigned>(columns) + static_cast<unsigned>(p.type) * 7);
  p.fill(random);
  q.fill(random);
  expect_right(kLaunch, [&] {
    p.write(0);
    q.write(kQ);
    arch::fence_shared_for_async();
    arch::sync_cta();
    float sums[columns / 2];
    for (int r = 0; r < columns / 2; ++r) sums[r] = static_cast<float>(100 * row_of(r) + column_of(r));
    const emulated::WgmmaShape shape{p.type, q.type, p.major, q.major, columns};
    const std::uint64_t q_descriptor = q.descriptor(kQ);
    std::uint32_t fragment[4] = {};
    const int per_word = 4 / bytes_of(p.type);
    for (int r = 0; r < 4; ++r)
      for (int e = 0; e < per_word; ++e)
        fragment[r] |= static_cast<std::uint32_t>(encode(p.type, p.value(thread() / 32 * 16 + thread() % 32 / 4 + 8 * (r % 2),
                                                                         per_word * (thread() % 4) + 4 * per_word * (r / 2) + e)))
                       << (32 / per_word * e);
    arch::wgmma_fence();
    for (int pass = 0; pass < 2; ++pass) {
      if (p_in_registers)
        emulated::wgmma(shape, sums, fragment, q_descriptor, emulated::Location::current());
      else
        emulated::wgmma(shape, sums, p.descriptor(0), q_descriptor, emulated::Location::current());
      arch::wgmma_commit();
    }
    arch::wgmma_wait<0>();
    for (int r = 0; r < columns / 2; ++r) {
      int expected = 100 * row_of(r) + column_of(r);
      for (int k = 0; k < depth_of(p.type); ++k) expected += 2 * p.value(row_of(r), k) * q.value(column_of(r), k);
      if (sums[r] != static_cast<float>(expected)) {
        ADD_FAILURE() << "row " << row_of(r) << ", column " << column_of(r) << ": " << sums[r] << ", not " << expected;
        break;
      }
    }
  });
}

TEST(Wgmma, SixteenBitTypesInEveryLayout) {
  for (const Numbers type : {Numbers::bf16, Numbers::fp16})
    for (const Major p_major : {Major::k, Major::vector})
      for (const Major q_major : {Major::k, Major::vector})
        multiply_and_check<128>({.type = type, .major = p_major}, {.type = type, .major = q_major}, false);
}

TEST(Wgmma, EverySwizzle) {
  for (const int swizzle : {16, 32, 64, 128})
    multiply_and_check<64>({.type = Numbers::bf16, .swizzle_bytes = swizzle}, {.type = Numbers::bf16, .swizzle_bytes = swizzle}, false);
}

TEST(Wgmma, NarrowAndWide) {
  multiply_and_check<8>({.type = Numbers::fp16}, {.type = Numbers::fp16}, false);
  multiply_and_check<40>({.type = Numbers::fp16}, {.type = Numbers::fp16}, false);
  multiply_and_check<256>({.type = Numbers::bf16}, {.type = Numbers::bf16}, false);
}

TEST(Wgmma, FirstOperandFromRegisters) {
  for (const Numbers type : {Numbers::bf16, Numbers::fp16, Numbers::e4m3, Numbers::e5m2})
    multiply_and_check<32>({.type = type}, {.type = type}, true);
}

TEST(Wgmma, EightBitTypesAndMixturesOfThem) {
  for (const Numbers p : {Numbers::e4m3, Numbers::e5m2})
    for (const Numbers q : {Numbers::e4m3, Numbers::e5m2}) multiply_and_check<32>({.type = p}, {.type = q}, false);
}

// The public call, as the kernels make it.
template <class Between>
Kernel gemm_step(const Operand& p, const Operand& q, Between between) {
  return [&p, &q, between] {
    p.write(0);
    q.write(kQ);
    arch::fence_shared_for_async();
    arch::sync_cta();
    float sums[32] = {};
    between(sums, arch::matrix_descriptor(arch::dynamic_shared_memory(), 8192, 1024),
            arch::matrix_descriptor(arch::dynamic_shared_memory() + kQ, 8192, 1024));
  };
}

struct WgmmaMisuse : testing::Test {
  Operand p{.type = Numbers::bf16}, q{.type = Numbers::bf16, .vectors = 64};
  WgmmaMisuse() {
    std::mt19937 random;
    p.fill(random);
    q.fill(random);
  }
  template <class Between>
  void expect(const char* expected, Between between) {
    expect_objection(kLaunch, expected, gemm_step(p, q, between));
  }
  static void issue(float (&d)[32], std::uint64_t p_descriptor, std::uint64_t q_descriptor,
                    emulated::Location at = emulated::Location::current()) {
    arch::wgmma<DataType::bf16, Major::k, Major::k>(d, p_descriptor, q_descriptor, at);
  }
};

TEST_F(WgmmaMisuse, RightUseIsAccepted) {
  expect_right(kLaunch, gemm_step(p, q, [](auto& d, auto a, auto b) {
                 arch::wgmma_fence();
                 issue(d, a, b);
                 arch::wgmma_commit();
                 arch::wgmma_wait<0>();
                 arch::wgmma_fence();
                 issue(d, a, b);
                 arch::wgmma_commit();
                 arch::wgmma_wait<0>();
               }));
}

TEST_F(WgmmaMisuse, AccumulatorsUsedBeforeTheWait) {
  expect("uses an accumulator while wgmma still work on it: no wgmma_wait lies between", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, b);
    arch::wgmma_commit();
    arch::float_to_bf16(d[3]);
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, AccumulatorsUsedAfterAWaitForTheGroupBefore) {
  expect("uses an accumulator while wgmma still work on it", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    for (int i = 0; i < 2; ++i) {
      issue(d, a, b);
      arch::wgmma_commit();
    }
    arch::wgmma_wait<1>();
    arch::store_shared(shared(32768 + thread() * 4), d[0]);
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, AccumulatorsWrittenBeforeTheWait) {
  expect("finds that an accumulator was written while wgmma still worked on it: no wgmma_wait lay between", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, b);
    arch::wgmma_commit();
    d[5] = 0;
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, NoFence) {
  expect("starts a wgmma on registers that it has written since its last wgmma_fence", [](auto& d, auto a, auto b) { issue(d, a, b); });
}
TEST_F(WgmmaMisuse, NoFenceAfterAWait) {
  expect("starts a wgmma on registers that it has written since its last wgmma_fence", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, b);
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
    issue(d, a, b);
  });
}
TEST_F(WgmmaMisuse, NoWaitAtTheEnd) {
  expect("ends while wgmma still work on its accumulators: no wgmma_wait<0>", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, b);
    arch::wgmma_commit();
  });
}
TEST_F(WgmmaMisuse, NeverCommitted) {
  expect("ends while wgmma still work on its accumulators", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, b);
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, ThreadsDisagree) {
  expect("starts a wgmma that differs from that of the other threads of its warpgroup \\(at line", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, thread() < 64 ? b : arch::advance_descriptor(b, 32));
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, NotAllThreadsCome) {
  expect("waits for wgmma: 96 of 128 threads have issued the next one", [](auto& d, auto a, auto b) {
    if (arch::warp_in_cta() == 2) return;
    arch::wgmma_fence();
    issue(d, a, b);
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, OperandsChangedWhileTheyAreRead) {
  expect("overwrites what another is still reading.*wgmma by warp", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, b);
    arch::wgmma_commit();
    arch::sync_cta();
    arch::store_shared(shared(0), 1.0f);
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, OperandsOutsideWhatWasFilled) {
  expect("starts a wgmma that reads shared memory that nobody has written", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, arch::advance_descriptor(b, 64 * 128));
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, BaseOffset) {
  expect("uses a matrix descriptor with a base offset, which is not emulated", [](auto& d, auto a, auto b) {
    arch::wgmma_fence();
    issue(d, a, b | std::uint64_t{1} << 49);
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
  });
}
TEST_F(WgmmaMisuse, NoProxyFence) {
  expect_objection(kLaunch, "starts a wgmma that reads through the asynchronous proxy what ordinary stores have written", [&] {
    p.write(0);
    q.write(kQ);
    arch::sync_cta();
    float sums[32] = {};
    arch::wgmma_fence();
    issue(sums, arch::matrix_descriptor(arch::dynamic_shared_memory(), 8192, 1024),
          arch::matrix_descriptor(arch::dynamic_shared_memory() + kQ, 8192, 1024));
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
  });
}

// 2^14 beside terms of 1: with 14 bits kept, what lies below 2^(14 - 13) is cut off.
float sum_with_a_large_term(emulated::Fp8Accumulation mode) {
  Operand p{.type = Numbers::e5m2}, q{.type = Numbers::e5m2, .vectors = 8};
  p.values.assign(kRows * 32, 1);
  q.values.assign(8 * 32, 1);
  for (int v = 0; v < kRows; ++v) p.values[static_cast<std::size_t>(v * 32)] = 128;
  for (int v = 0; v < 8; ++v) q.values[static_cast<std::size_t>(v * 32)] = 128;
  p.lay_out();
  q.lay_out();
  float result = 0;
  emulated::Options options = with_seed(1);
  options.fp8 = mode;
  emulated::run(kLaunch, options, [&] {
    p.write(0);
    q.write(kQ);
    arch::fence_shared_for_async();
    arch::sync_cta();
    float sums[4] = {};
    arch::wgmma_fence();
    emulated::wgmma({Numbers::e5m2, Numbers::e5m2, Major::k, Major::k, 8}, sums, p.descriptor(0), q.descriptor(kQ),
                    emulated::Location::current());
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
    if (thread() == 77) result = sums[2];
  });
  return result;
}
TEST(Wgmma, EightBitSumsKeepFourteenBitsOrAll) {
  EXPECT_EQ(sum_with_a_large_term(emulated::Fp8Accumulation::exact), 16384.0f + 31);
  EXPECT_EQ(sum_with_a_large_term(emulated::Fp8Accumulation::hopper), 16384.0f);
}

TEST(Wgmma, EightBitNumbersAreDecoded) {
  EXPECT_EQ(emulated::e4m3_to_float(0x38), 1.0f);
  EXPECT_EQ(emulated::e4m3_to_float(0x7e), 448.0f);
  EXPECT_EQ(emulated::e4m3_to_float(0x81), -0x1p-9f);
  EXPECT_TRUE(std::isnan(emulated::e4m3_to_float(0x7f)) && std::isnan(emulated::e4m3_to_float(0xff)));
  EXPECT_EQ(emulated::e5m2_to_float(0x3c), 1.0f);
  EXPECT_EQ(emulated::e5m2_to_float(0x7b), 57344.0f);
  EXPECT_TRUE(std::isinf(emulated::e5m2_to_float(0x7c)) && std::isnan(emulated::e5m2_to_float(0x7d)));
}

}  // namespace
}  // namespace sluice::test
