#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "layout.hpp"
#include "libraries.hpp"
#include "operations.hpp"

#include <algorithm>

namespace finch::backend::cuda {
namespace {

using Descriptor = UniqueHandle<PointerTraits<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using Matrix = UniqueHandle<PointerTraits<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using Preference = UniqueHandle<PointerTraits<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

constexpr std::size_t most_workspace = std::size_t{4} << 20;  ///< bytes; these products are small

/// Returns a column-major matrix for cuBLAS. A row-major matrix (rows, columns) of Finch is a column-major matrix
/// (columns, rows) of cuBLAS.
Matrix make_matrix(std::int64_t rows, std::int64_t columns) {
    cublasLtMatrixLayout_t matrix = nullptr;
    FINCH_CUBLAS(cublasLtMatrixLayoutCreate(&matrix, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns), rows));
    return Matrix(matrix);
}

cublasComputeType_t compute_type(Precision precision) {
    return precision == Precision::tf32       ? CUBLAS_COMPUTE_32F_FAST_TF32
           : precision == Precision::bfloat16 ? CUBLAS_COMPUTE_32F_FAST_16BF
           : precision == Precision::float16  ? CUBLAS_COMPUTE_32F_FAST_16F
                                              : CUBLAS_COMPUTE_32F;
}

/// The product c (m, n) = op(a) · op(b), all column-major. `a` is (k, m) if transposed, otherwise (m, k). `b` is (n, k)
/// if transposed, otherwise (k, n).
struct ProductShape {
    std::int64_t m, n, k;
    bool transpose_a, transpose_b;
};

/// A matrix product. The algorithm is the first bitwise reproducible one in the ranking by cuBLASLt's heuristics. Sums
/// over k are computed in one piece or through the workspace.
class Product {
public:
    /// `alignment` is the alignment of the matrices' addresses in bytes.
    Product(Libraries& libraries, const ProductShape& shape, Precision precision, std::uint32_t alignment)
        : libraries_(libraries),
          a_(shape.transpose_a ? make_matrix(shape.k, shape.m) : make_matrix(shape.m, shape.k)),
          b_(shape.transpose_b ? make_matrix(shape.n, shape.k) : make_matrix(shape.k, shape.n)),
          c_(make_matrix(shape.m, shape.n)) {
        cublasLtMatmulDesc_t descriptor = nullptr;
        FINCH_CUBLAS(cublasLtMatmulDescCreate(&descriptor, compute_type(precision), CUDA_R_32F));
        descriptor_.reset(descriptor);
        set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_a);
        set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_b);
        choose(shape, alignment);
    }

    [[nodiscard]] std::size_t workspace_bytes() const { return chosen_.workspaceSize; }

    void run(cudaStream_t stream, const float* a, const float* b, float* c, void* workspace) const {
        const float one = 1;
        const float zero = 0;
        FINCH_CUBLAS(cublasLtMatmul(libraries_.cublas(), descriptor_.get(), &one, a, a_.get(), b, b_.get(), &zero, c,
                                    c_.get(), c, c_.get(), &chosen_.algo, workspace, chosen_.workspaceSize, stream));
    }

private:
    void set_transposed(cublasLtMatmulDescAttributes_t which, bool transposed) {
        const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        FINCH_CUBLAS(cublasLtMatmulDescSetAttribute(descriptor_.get(), which, &operation, sizeof operation));
    }

    /// Throws ApiError if cuBLASLt has no algorithm.
    void choose(const ProductShape& shape, std::uint32_t alignment) {
        cublasLtMatmulPreference_t handle = nullptr;
        FINCH_CUBLAS(cublasLtMatmulPreferenceCreate(&handle));
        const Preference preference(handle);
        FINCH_CUBLAS(cublasLtMatmulPreferenceSetAttribute(handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                          &most_workspace, sizeof most_workspace));
        const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        FINCH_CUBLAS(cublasLtMatmulPreferenceSetAttribute(handle, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                          sizeof schemes));
        for (const auto which :
             {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
            FINCH_CUBLAS(cublasLtMatmulPreferenceSetAttribute(handle, which, &alignment, sizeof alignment));
        }
        int found = 0;
        const cublasStatus_t status =
            cublasLtMatmulAlgoGetHeuristic(libraries_.cublas(), descriptor_.get(), a_.get(), b_.get(), c_.get(),
                                           c_.get(), handle, 1, &chosen_, &found);
        if (status != CUBLAS_STATUS_SUCCESS || found == 0 || chosen_.state != CUBLAS_STATUS_SUCCESS) {
            throw ApiError(fmt::format("cuBLASLt has no algorithm for the product ({} x {}) · ({} x {}): {}", shape.m,
                                       shape.k, shape.k, shape.n, cublasLtGetStatusString(status)));
        }
    }

    Libraries& libraries_;
    Matrix a_, b_, c_;
    Descriptor descriptor_;
    cublasLtMatmulHeuristicResult_t chosen_{};
};

std::int64_t features_of(const LinearShape& shape) {
    return shape.height * shape.width * shape.channels;
}

/// True if CHW order (the columns of the weights) differs from HWC order (the columns of x).
bool is_permuted(const LinearShape& shape) {
    return shape.height * shape.width > 1 && shape.channels > 1;
}

/// Returns the alignment of the products' operands in bytes. Packed weights have memory of their own, and activations
/// begin at cache lines of their arena. Canonical weights may begin anywhere in their arena, and cuBLASLt's 128-bit
/// loads would fault there.
std::uint32_t alignment_of(const LinearShape& shape) {
    return is_permuted(shape) ? 16 : sizeof(float);
}

}  // namespace

/// The three products of a linear layer's shape. In row-major order: y (B, U) = x (B, F) · weightᵀ (F, U).
struct CublasLinearPlan {
    CublasLinearPlan(Libraries& libraries, const LinearShape& s)
        : forward(libraries,
                  {.m = s.units, .n = s.batch, .k = features_of(s), .transpose_a = true, .transpose_b = false},
                  s.precision, alignment_of(s)),
          data(libraries, {.m = features_of(s), .n = s.batch, .k = s.units, .transpose_a = false, .transpose_b = false},
               s.precision, alignment_of(s)),
          weights(libraries,
                  {.m = features_of(s), .n = s.units, .k = s.batch, .transpose_a = false, .transpose_b = true},
                  s.precision, alignment_of(s)) {}
    Product forward, data, weights;
};

namespace {

std::shared_ptr<CublasLinearPlan> plan_for(Stream& stream, const LinearShape& shape) {
    Libraries& libraries = stream.libraries();
    return libraries.linears.get(shape, [&] { return CublasLinearPlan(libraries, shape); });
}

std::size_t scratch_bytes_of(const CublasLinearPlan& plan) {
    return std::max(
        {plan.forward.workspace_bytes(), plan.data.workspace_bytes(), plan.weights.workspace_bytes(), std::size_t{16}});
}

class CublasLinear : public Operation {
public:
    CublasLinear(Stream& stream, const LinearShape& shape)
        : stream_(stream), shape_(shape), weights_(static_cast<std::size_t>(shape.units * features_of(shape))) {
        plan_ = plan_for(stream, shape);
        scratch_ = stream.scratch(scratch_bytes_of(*plan_));
        if (is_permuted(shape_)) {
            packed_ = stream.allocate(weights_ * sizeof(float));
            packed_grads_ = stream.allocate(weights_ * sizeof(float));
        }
        bias_partials_ = stream.allocate(bias_gradient_partials(shape.batch, shape.units));
    }
    ~CublasLinear() override { stream_.deferred().forget(bias_partials_.get()); }
    CublasLinear(const CublasLinear&) = delete;
    CublasLinear& operator=(const CublasLinear&) = delete;

    void pack(const float* parameters, float* /*buffers*/) override {
        parameters_ = parameters;
        if (is_permuted(shape_)) {
            transpose(stream_.get(), parameters, shape_.units, shape_.channels, pixels(),
                      static_cast<float*>(packed_.get()));
        }
    }

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        plan_->forward.run(stream_.get(), weights(), x[0], y, scratch_->get());
        bias_activation(stream_.get(), shape_.activation, {y}, shape_.units, parameters_ + weights_, {y}, shape_.batch,
                        shape_.units);
    }

    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        stream_.deferred().sums.push_back(bias_gradient(stream_.get(), shape_.activation, {y}, {grad_y}, shape_.batch,
                                                        shape_.units, static_cast<float*>(bias_partials_.get()),
                                                        grad_parameters + weights_));
        float* grads = is_permuted(shape_) ? static_cast<float*>(packed_grads_.get()) : grad_parameters;
        plan_->weights.run(stream_.get(), x[0], grad_y, grads, scratch_->get());
        if (is_permuted(shape_)) {
            transpose(stream_.get(), static_cast<const float*>(grads), shape_.units, pixels(), shape_.channels,
                      grad_parameters);
        }
        if (shape_.needs_input_grad) {
            plan_->data.run(stream_.get(), weights(), grad_y, grad_x[0], scratch_->get());
        }
    }

    [[nodiscard]] bool defers_grads() const override { return true; }
    [[nodiscard]] std::string implementation() const override { return "cublaslt"; }

private:
    [[nodiscard]] std::int64_t pixels() const { return shape_.height * shape_.width; }
    [[nodiscard]] const float* weights() const {
        return is_permuted(shape_) ? static_cast<const float*>(packed_.get()) : parameters_;
    }

    Stream& stream_;
    LinearShape shape_;
    std::shared_ptr<CublasLinearPlan> plan_;
    std::size_t weights_;  ///< floats
    std::shared_ptr<const Scratch> scratch_;
    StreamMemory packed_, packed_grads_;  ///< columns in HWC order
    StreamMemory bias_partials_;          ///< used until finish_deferred()
    const float* parameters_ = nullptr;   ///< canonical
};

}  // namespace

OperationBytes library_bytes(Stream& stream, const LinearShape& shape) {
    return {.scratch = scratch_bytes_of(*plan_for(stream, shape)),
            .kept = bias_gradient_partials(shape.batch, shape.units)};
}

std::unique_ptr<Operation> make_library(Stream& stream, const LinearShape& shape) {
    return std::make_unique<CublasLinear>(stream, shape);
}

}  // namespace finch::backend::cuda
