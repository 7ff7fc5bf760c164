#include "sluice/calibration.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/kernel_layout.hpp"
#include "planner/calibration/built_in_text.hpp"
#include "planner/calibration/constants.hpp"
#include "planner/calibration/kernel_factor.hpp"
#include "planner/calibration/learnt.hpp"
#include "planner/json_format.hpp"

namespace sluice {
namespace {

constexpr std::string_view kFormat = "sluice-calibration";

// The load path with ordinary loads: 4096 x 4096 x 4096 and smaller, 19 to 22 times the time of the same tile with TMA.
constexpr double kThreadsLoadFactor = 20;

Status check_range(const std::string& name, double value, double least, double most) {
  if (value >= least && value <= most) return Nothing{};  // NaN is in no range
  return Error{ErrorCode::invalid_argument, fmt::format("{} = {} must be from {} to {}", name, value, least, most)};
}

Status check_kernel_factors(const std::vector<KernelFactor>& factors) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const std::string path = fmt::format("kernel_factors[{}]", i);
    if (factors[i].kernel.empty())
      return Error{ErrorCode::invalid_argument, path + ".kernel is empty; name the kernel as `sluice list` does"};
    const auto same = [&](const KernelFactor& other) { return other.kernel == factors[i].kernel; };
    const auto end = factors.begin() + static_cast<std::ptrdiff_t>(i);
    if (const auto first = std::find_if(factors.begin(), end, same); first != end)
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}.kernel = \"{}\" was named before, by kernel_factors[{}]; remove one of them", path, factors[i].kernel,
                               first - factors.begin())};
    const std::string name = fmt::format("{}.factor (of {})", path, factors[i].kernel);
    if (Status s = check_range(name, factors[i].factor, kLeastKernelFactor, kMostKernelFactor); !s) return s;
  }
  return Nothing{};
}

Status check_provenance(const CalibrationProvenance& p) {
  constexpr double kMost = 1e9;
  if (Status s = check_range("provenance.shapes", p.shapes, 0, kMost); !s) return s;
  if (Status s = check_range("provenance.timings", p.timings, 0, kMost); !s) return s;
  for (const auto& [name, ratio] : {std::pair{"provenance.choice_mean", p.choice_mean}, {"provenance.choice_worst", p.choice_worst}})
    if (ratio != 0)
      if (Status s = check_range(name, ratio, 1, kMost); !s)
        return Error{s.error().code, s.error().message + ": it is a time over the fastest one's; 0 where it is not known"};
  return Nothing{};
}

}  // namespace

void fields(Either<KernelFactor> auto& s, auto&& field) {
  auto& [kernel, factor] = s;
  field("kernel", kernel);
  field("factor", factor);
}

void fields(Either<LearntInput> auto& s, auto&& field) {
  auto& [name, mean, spread, weights] = s;
  field("name", name);
  field("mean", mean);
  field("spread", spread);
  field("weights", weights);
}

void fields(Either<LearntComparison> auto& s, auto&& field) {
  auto& [operands, sm_count, hbm_gb_per_s, inputs, bias, out] = s;
  field("operands", operands);
  field("sm_count", sm_count);
  field("hbm_gb_per_s", hbm_gb_per_s);
  field("inputs", inputs);
  field("bias", bias);
  field("out", out);
}

void fields(Either<CalibrationProvenance> auto& s, auto&& field) {
  auto& [device, date, driver, commit, remarks, shapes, timings, choice_mean, choice_worst] = s;
  field("device", device);
  field("date", date);
  field("driver", driver);
  field("commit", commit);
  field("remarks", remarks);
  field("shapes", shapes);
  field("timings", timings);
  field("choice_mean", choice_mean);
  field("choice_worst", choice_worst);
}

void fields(Either<Calibration> auto& s, auto&& field) {
  field("provenance", s.provenance);
  for (const Constant& constant : kConstants) field(constant.name, s.*constant.value);
  field("kernel_factors", s.kernel_factors);
  field("learnt", s.learnt, std::vector<LearntComparison>());
}

std::string kernel_key(const KernelConfig& kernel) {
  const std::string whole = name(kernel);  // "bf16_rc_coop_...": type, layout, and what is wanted
  // Promotion and dequantisation take time of their own: such kernels have factors of their own.
  const bool fp8 = is_fp8(kernel.type_a);
  return std::string(dequantises(kernel) ? fp8 ? "w4a8_" : "w4_"
                     : fp8               ? "fp8_"
                                         : "") +
         whole.substr(whole.find('_', whole.find('_') + 1) + 1);
}

double kernel_factor(const Calibration& calibration, const KernelConfig& kernel) {
  const std::string key = kernel_key(kernel);
  for (const KernelFactor& known : calibration.kernel_factors)
    if (known.kernel == key) return known.factor;
  return kernel.load == LoadPath::threads ? kThreadsLoadFactor : 1.0;
}

Status validate(const Calibration& calibration) {
  for (const Constant& c : kConstants)
    if (Status s = check_range(c.name, calibration.*c.value, c.least, c.most); !s) return s;
  if (Status s = check_kernel_factors(calibration.kernel_factors); !s) return s;
  if (Status s = check_learnt(calibration); !s) return s;
  return check_provenance(calibration.provenance);
}

// Lists of numbers, of which a calibration has thousands, each on one line.
std::string to_json(const Calibration& calibration) {
  const std::string text = with_header(kFormat, calibration);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = text[i] == '[' ? text.find_first_not_of("0123456789+-.e, \n", i + 1) : std::string::npos;
    const bool numbers = end != std::string::npos && text[end] == ']';
    if (!numbers) {
      out += text[i++];
      continue;
    }
    for (; i < end; ++i)
      if (!std::isspace(static_cast<unsigned char>(text[i]))) out += text[i] == ',' ? std::string(", ") : std::string(1, text[i]);
  }
  return out;
}

Result<Calibration> calibration_from_json(const std::string& text) {
  Result<Calibration> calibration = parse_document<Calibration>(text, kFormat);
  if (!calibration) return calibration;
  if (Status s = validate(*calibration); !s) return s.error();
  return calibration;
}

const Calibration& built_in_calibration() {
  static const Calibration calibration = [] {
    const Result<Calibration> read = calibration_from_json(kBuiltInCalibration);
    if (read) return *read;
    // Only a build from a wrong file comes here, and a unit test before it.
    std::fprintf(stderr, "sluice: the calibration of this build, src/planner/calibration/h200.json: %s\n", read.error().message.c_str());
    std::abort();
  }();
  return calibration;
}

}  // namespace sluice
