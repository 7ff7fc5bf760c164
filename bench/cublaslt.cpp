#include "bench/cublaslt.hpp"

#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>

namespace sluice::bench {

// Named as in the library, without the prefix.
struct CublasLtFunctions {
  decltype(&cublasLtCreate) Create = nullptr;
  decltype(&cublasLtDestroy) Destroy = nullptr;
  decltype(&cublasLtGetVersion) GetVersion = nullptr;
  decltype(&cublasLtGetStatusString) GetStatusString = nullptr;
  decltype(&cublasLtMatmulDescCreate) MatmulDescCreate = nullptr;
  decltype(&cublasLtMatmulDescDestroy) MatmulDescDestroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) MatrixLayoutCreate = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) MatmulAlgoConfigGetAttribute = nullptr;
  decltype(&cublasLtMatmul) Matmul = nullptr;
};

namespace {

std::string library_name() { return fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR); }

// Where the loader looks by itself, then where toolkits are.
std::vector<std::string> places() {
  std::vector<std::string> folders = {""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable)) folders.push_back(std::string(home) + "/lib64/");
  for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/", "/usr/lib/x86_64-linux-gnu/"})
    folders.push_back(folder);
  return folders;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, CublasLtFunctions& f) {
  return find(library, "cublasLtCreate", f.Create) && find(library, "cublasLtDestroy", f.Destroy) &&
         find(library, "cublasLtGetVersion", f.GetVersion) && find(library, "cublasLtGetStatusString", f.GetStatusString) &&
         find(library, "cublasLtMatmulDescCreate", f.MatmulDescCreate) && find(library, "cublasLtMatmulDescDestroy", f.MatmulDescDestroy) &&
         find(library, "cublasLtMatmulDescSetAttribute", f.MatmulDescSetAttribute) &&
         find(library, "cublasLtMatrixLayoutCreate", f.MatrixLayoutCreate) &&
         find(library, "cublasLtMatrixLayoutDestroy", f.MatrixLayoutDestroy) &&
         find(library, "cublasLtMatmulPreferenceCreate", f.MatmulPreferenceCreate) &&
         find(library, "cublasLtMatmulPreferenceDestroy", f.MatmulPreferenceDestroy) &&
         find(library, "cublasLtMatmulPreferenceSetAttribute", f.MatmulPreferenceSetAttribute) &&
         find(library, "cublasLtMatmulAlgoGetHeuristic", f.MatmulAlgoGetHeuristic) &&
         find(library, "cublasLtMatmulAlgoConfigGetAttribute", f.MatmulAlgoConfigGetAttribute) && find(library, "cublasLtMatmul", f.Matmul);
}

}  // namespace

Result<std::shared_ptr<const CublasLt>> CublasLt::load() {
  std::string tried;
  for (const std::string& folder : places()) {
    const std::string path = folder + library_name();
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
      continue;
    }
    // The library stays loaded until the program ends: it does not survive being unloaded with a CUDA context alive.
    std::shared_ptr<CublasLt> loaded(new CublasLt);
    loaded->functions_ = std::make_unique<CublasLtFunctions>();
    if (!find_all(library, *loaded->functions_)) return Error{ErrorCode::unsupported, path + " lacks a function: " + dlerror()};
    const cublasStatus_t created = loaded->functions_->Create(&loaded->handle_);
    if (created != CUBLAS_STATUS_SUCCESS)
      return Error{ErrorCode::cuda, std::string("cublasLtCreate: ") + loaded->functions_->GetStatusString(created)};
    return std::shared_ptr<const CublasLt>(loaded);
  }
  return Error{ErrorCode::not_found, library_name() + " is not here (" + tried +
                                         "); install the CUDA Toolkit's cuBLAS or set LD_LIBRARY_PATH, or measure without --against"};
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) functions_->Destroy(handle_);
}

std::string CublasLt::version() const {
  const std::size_t version = functions_->GetVersion();  // major * 10000 + minor * 100 + patch, of CUDA 12 and newer
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void CublasLtMatmul::check(cublasStatus_t status, const char* doing) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceFailure(fmt::format("cuBLASLt, {} for {}: {}", doing, shape_, library_->functions().GetStatusString(status)));
}

namespace {

// What cuBLASLt asks of FP8 beyond what Sluice does; it is not sure to find out by itself.
bool too_odd(const GemmProblem& p) {
  constexpr std::int64_t kScales = 4, kBytes = 16;
  return is_fp8(p.type_a) && (p.m % kScales != 0 || p.n % kBytes != 0 || p.k % kBytes != 0);
}

}  // namespace

CublasLtMatmul::CublasLtMatmul(std::shared_ptr<const CublasLt> library, const GemmProblem& p)
    : library_(std::move(library)), shape_(fmt::format("{}x{}x{}", p.m, p.n, p.k)), scaled_(p.scaling_a != Scaling::none) {
  if (too_odd(p)) throw NoAlgorithm("cuBLASLt multiplies FP8 with m % 4 == 0, n % 16 == 0 and k % 16 == 0 alone, not " + shape_);
  const CublasLtFunctions& f = library_->functions();
  const auto m = static_cast<std::uint64_t>(p.m), n = static_cast<std::uint64_t>(p.n), k = static_cast<std::uint64_t>(p.k);
  const cudaDataType_t type = p.type_a == DataType::e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
  check(f.MatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing the product");
  const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
  check(f.MatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "transposing B");
  check(f.MatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain), "leaving A as it is");
  check(f.MatrixLayoutCreate(&layout_b_, type, k, n, p.ldb), "describing B");
  check(f.MatrixLayoutCreate(&layout_a_, type, k, m, p.lda), "describing A");
  check(f.MatrixLayoutCreate(&layout_d_, CUDA_R_16BF, n, m, p.ldd), "describing D");
  if (scaled_) describe_scales();
}

// Of its A, which is our B, and of its B, which is our A.
void CublasLtMatmul::describe_scales() {
  const CublasLtFunctions& f = library_->functions();
  const cublasLtMatmulMatrixScale_t blocks = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, vectors = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
  check(f.MatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &blocks, sizeof blocks), "describing the scales of B");
  check(f.MatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &vectors, sizeof vectors), "describing the scales of A");
}

void CublasLtMatmul::point_to_scales(const void* scale_a, const void* scale_b) const {
  const CublasLtFunctions& f = library_->functions();
  check(f.MatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale_b, sizeof scale_b), "pointing to scales");
  check(f.MatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale_a, sizeof scale_a), "pointing to scales");
}

CublasLtMatmul::~CublasLtMatmul() {
  const CublasLtFunctions& f = library_->functions();
  for (const cublasLtMatrixLayout_t layout : {layout_a_, layout_b_, layout_d_})
    if (layout != nullptr) f.MatrixLayoutDestroy(layout);
  if (operation_ != nullptr) f.MatmulDescDestroy(operation_);
}

std::vector<cublasLtMatmulAlgo_t> CublasLtMatmul::heuristics(int count, CublasLtReduction reduction) const {
  const CublasLtFunctions& f = library_->functions();
  alignas(16) static constexpr float kSomeScale = 1;  // never read: where scales lie matters to the heuristic, if only for their alignment
  if (scaled_) point_to_scales(&kSomeScale, &kSomeScale);
  cublasLtMatmulPreference_t preference = nullptr;
  check(f.MatmulPreferenceCreate(&preference), "making a preference");
  const std::size_t workspace = kWorkspaceBytes;
  const std::uint32_t in_fp32 = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  cublasStatus_t status =
      f.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
  if (status == CUBLAS_STATUS_SUCCESS && reduction == CublasLtReduction::in_fp32)
    status = f.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_fp32, sizeof in_fp32);
  std::vector<cublasLtMatmulHeuristicResult_t> answers(static_cast<std::size_t>(count));
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS)
    status = f.MatmulAlgoGetHeuristic(library_->handle(), operation_, layout_b_, layout_a_, layout_d_, layout_d_, preference, count,
                                      answers.data(), &found);
  f.MatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "asking the heuristic");
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i)
    if (answers[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(answers[static_cast<std::size_t>(i)].algo);
  if (algorithms.empty()) throw NoAlgorithm("cuBLASLt has no algorithm for " + shape_);
  return algorithms;
}

std::string CublasLtMatmul::describe(const cublasLtMatmulAlgo_t& algorithm) const {
  const auto attribute = [&](cublasLtMatmulAlgoConfigAttributes_t which) {
    std::int32_t value = -1;
    std::size_t written = 0;
    const cublasStatus_t status = library_->functions().MatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : -1;
  };
  return fmt::format("algorithm {}, tile {}, stages {}, splits {}", attribute(CUBLASLT_ALGO_CONFIG_ID),
                     attribute(CUBLASLT_ALGO_CONFIG_TILE_ID), attribute(CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     attribute(CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

void CublasLtMatmul::enqueue(const cublasLtMatmulAlgo_t& algorithm, const OperandSet& set, void* workspace, cudaStream_t stream) const {
  const float one = 1, zero = 0;
  if (scaled_) point_to_scales(set.scale_a, set.scale_b);
  const void* const b = set.dense_arguments().b;
  check(library_->functions().Matmul(library_->handle(), operation_, &one, b, layout_b_, set.a, layout_a_, &zero, set.d, layout_d_, set.d,
                                     layout_d_, &algorithm, workspace, kWorkspaceBytes, stream),
        "multiplying");
}

}  // namespace sluice::bench
