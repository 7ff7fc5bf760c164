// pack_w4() and permute_columns() on the GPU beside the CPU's plain loops: the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/device_memory.hpp"
#include "gemm_harness.hpp"
#include "pack_w4_case.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::check;

// A buffer of the host, guards and all, in the GPU's memory.
class OnDevice {
 public:
  explicit OnDevice(const GuardedBytes& host) : first_(host.empty() ? 0 : host.first()) {
    if (host.empty()) return;
    memory_ = bench::DeviceBuffer(host.all().size());
    check(cudaMemcpy(memory_.data(), host.all().data(), host.all().size(), cudaMemcpyHostToDevice), "copying to the GPU");
    check(cudaDeviceSynchronize(), "copying to the GPU");  // the copy may return before the last bytes have come
  }
  void* data() const { return memory_.data() == nullptr ? nullptr : memory_.data() + first_; }
  void fetch(GuardedBytes& host) const {
    check(cudaMemcpy(host.all().data(), memory_.data(), host.all().size(), cudaMemcpyDeviceToHost), "copying from the GPU");
  }

 private:
  bench::DeviceBuffer memory_;
  std::size_t first_;
};

TEST(PackW4, MakesTheBytesOfTheCpu) {
  const bench::DeviceStream stream;
  std::uint64_t seed = 0;
  for (const PackW4Case& each : pack_w4_cases(settings().small)) {
    ++seed;
    PackW4Operands got = make_operands(each, seed), expected = make_operands(each, seed);
    const OnDevice codes(got.codes), scales(got.scales), zeros(got.zeros), order(got.order), packed(got.packed);
    const PackW4Arguments arguments{.codes = codes.data(),
                                    .scales = scales.data(),
                                    .zeros = zeros.data(),
                                    .order = static_cast<const std::int32_t*>(order.data()),
                                    .packed = packed.data()};
    const Status status = pack_w4(each.problem, arguments, stream);
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    stream.synchronize("packing " + describe(each));
    packed.fetch(got.packed);
    ASSERT_TRUE(pack_w4_on_cpu(each.problem, expected.arguments()).ok());
    ASSERT_EQ(differences(describe(each), got.packed, expected.packed), "");
  }
}

TEST(PermuteColumns, MakesTheElementsOfTheCpu) {
  const bench::DeviceStream stream;
  std::uint64_t seed = 0;
  for (const PermuteCase& each : permute_cases(settings().small)) {
    ++seed;
    PermuteOperands got = make_operands(each, seed), expected = make_operands(each, seed);
    const OnDevice from(got.from), order(got.order), to(got.to);
    const Status status = permute_columns(each.problem, from.data(), static_cast<const std::int32_t*>(order.data()), to.data(), stream);
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    stream.synchronize("permuting " + describe(each));
    to.fetch(got.to);
    const auto* const host_order = static_cast<const std::int32_t*>(expected.order.data());
    ASSERT_TRUE(permute_columns_on_cpu(each.problem, expected.from.data(), host_order, expected.to.data()).ok());
    ASSERT_EQ(differences(describe(each), got.to, expected.to), "");
  }
}

// Of the fastest of some turns: whatever else runs on the GPU is in the way of some.
template <class Launch>
double fastest_us(const bench::DeviceStream& stream, const Launch& launch) {
  constexpr int kTurns = 10;
  const bench::DeviceEvent begin, end;
  double fastest = HUGE_VAL;
  for (int turn = 0; turn < kTurns; ++turn) {
    begin.record(stream);
    launch();
    end.record(stream);
    stream.synchronize("timing");
    fastest = std::min(fastest, begin.us_until(end));
  }
  return fastest;
}

// A layer of 57344 x 8192 is packed at a rate near that of a copy. The bound is loose: what takes as many times as long is broken.
TEST(PackW4, TakesNotManyTimesAsLongAsACopy) {
  constexpr double kMostCopies = 16;
  if (settings().small) GTEST_SKIP() << "large matrices are left out";
  const bench::DeviceStream stream;
  for (const W4Source source : {W4Source::plain, W4Source::gptq, W4Source::awq})
    for (const bool reordered : {false, true}) {
      PackW4Problem p{.n = 57344, .k = 8192, .format = {.group_size = 128, .zero_points = true}, .source = source};
      const std::int64_t groups = p.k / 128;
      bench::DeviceBuffer codes(static_cast<std::size_t>(p.n * p.k / 2)), scales(static_cast<std::size_t>(p.n * groups * 2));
      bench::DeviceBuffer zeros(static_cast<std::size_t>(p.n * groups)), order(static_cast<std::size_t>(p.k * 4));
      bench::DeviceBuffer packed(static_cast<std::size_t>(packed_w4_bytes(p.n, p.k, p.format)));
      for (bench::DeviceBuffer* each : {&codes, &scales, &zeros}) check(cudaMemset(each->data(), 0x11, each->size_bytes()), "filling");
      std::vector<std::int32_t> rows(static_cast<std::size_t>(p.k));
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i * 4099 % rows.size());  // odd: a permutation
      check(cudaMemcpy(order.data(), rows.data(), order.size_bytes(), cudaMemcpyHostToDevice), "copying the order");
      const PackW4Arguments arguments{.codes = codes.data(),
                                      .scales = scales.data(),
                                      .zeros = zeros.data(),
                                      .order = reordered ? reinterpret_cast<const std::int32_t*>(order.data()) : nullptr,
                                      .packed = packed.data()};
      const std::size_t bytes = std::min(codes.size_bytes(), packed.size_bytes());
      const double copying = fastest_us(
          stream, [&] { check(cudaMemcpyAsync(packed.data(), codes.data(), bytes, cudaMemcpyDeviceToDevice, stream), "copying"); });
      const double packing = fastest_us(stream, [&] { EXPECT_TRUE(pack_w4(p, arguments, stream).ok()); });
      const double mb = static_cast<double>(codes.size_bytes() + packed.size_bytes()) * 1e-6;
      std::printf("packing 57344 x 8192 from %s%s: %.0f us, %.0f GB/s, %.1f copies\n", to_string(source), reordered ? ", reordered" : "",
                  packing, mb / packing * 1e3, packing / copying);
      EXPECT_LT(packing, kMostCopies * copying) << to_string(source);
    }
}

}  // namespace
}  // namespace sluice::gpu_tests
