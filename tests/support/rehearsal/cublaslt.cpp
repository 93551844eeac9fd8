// Replaces cuBLASLt in tests: products of column-major float matrices in simple loops. The compute type determines how
// the factors are rounded.
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/engines.hpp"
#include "support/rehearsal/kernel_entry.hpp"

#include <cstring>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace finch::rehearsal {
namespace {

bool has_algorithm = true;

struct Matrix {
    std::uint64_t rows, columns;
    std::int64_t leading;
};
struct Product {
    cublasComputeType_t type = CUBLAS_COMPUTE_32F;
    bool transpose_a = false;
    bool transpose_b = false;
};

struct Preference {
    std::uint32_t alignment = 256;  ///< bytes; the default of cuBLASLt
};

template <class Own, class Opaque>
Own& own(Opaque* handle) {
    return *reinterpret_cast<Own*>(handle);
}
template <class Own, class Opaque>
const Own& own(const Opaque* handle) {
    return *reinterpret_cast<const Own*>(handle);
}

double rounded(cublasComputeType_t type, float value) {
    if (type == CUBLAS_COMPUTE_32F_FAST_16F) {
        value = __half2float(__float2half_rn(value));
    } else if (type == CUBLAS_COMPUTE_32F_FAST_16BF) {
        value = __bfloat162float(__float2bfloat16_rn(value));
    }
    return static_cast<double>(value);
}

void multiply(const Product& product, const float* a, const Matrix& of_a, const float* b, const Matrix& of_b, float* c,
              const Matrix& of_c) {
    const auto entry = [&](const float* data, const Matrix& matrix, std::uint64_t row, std::uint64_t of_column) {
        return rounded(product.type, data[of_column * static_cast<std::uint64_t>(matrix.leading) + row]);
    };
    const std::uint64_t inner = product.transpose_a ? of_a.rows : of_a.columns;
    for (std::uint64_t column = 0; column < of_c.columns; ++column) {
        for (std::uint64_t row = 0; row < of_c.rows; ++row) {
            double sum = 0;
            for (std::uint64_t k = 0; k < inner; ++k) {
                sum += (product.transpose_a ? entry(a, of_a, k, row) : entry(a, of_a, row, k)) *
                       (product.transpose_b ? entry(b, of_b, column, k) : entry(b, of_b, k, column));
            }
            c[column * static_cast<std::uint64_t>(of_c.leading) + row] = static_cast<float>(sum);
        }
    }
}

bool is_device_matrix(const void* data, const Matrix& matrix, std::uint64_t alignment) {
    return reinterpret_cast<std::uintptr_t>(data) % alignment == 0 &&
           is_device_memory(data, static_cast<std::size_t>(matrix.leading) * matrix.columns * sizeof(float));
}

}  // namespace

void offer_products(bool offered) {
    has_algorithm = offered;
}

}  // namespace finch::rehearsal

using namespace finch::rehearsal;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t*) {
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
    return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() {
    return 130000;
}
const char* cublasLtGetStatusString(cublasStatus_t) {
    return "an error of the stand-in";
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    if (type != CUDA_R_32F || leading < static_cast<int64_t>(rows)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Matrix{rows, columns, leading});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete &own<Matrix>(layout);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t type, cudaDataType_t) {
    *product = reinterpret_cast<cublasLtMatmulDesc_t>(new Product{.type = type});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    delete &own<Product>(product);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t which,
                                              const void* value, size_t) {
    cublasOperation_t operation = CUBLAS_OP_N;
    std::memcpy(&operation, value, sizeof operation);
    (which == CUBLASLT_MATMUL_DESC_TRANSA ? own<Product>(product).transpose_a : own<Product>(product).transpose_b) =
        operation == CUBLAS_OP_T;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete &own<Preference>(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* value,
                                                    size_t) {
    if (which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) {
        std::memcpy(&own<Preference>(preference).alignment, value, sizeof(std::uint32_t));
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
    *found = has_algorithm ? 1 : 0;
    results[0] = {};
    results[0].workspaceSize = 100;
    results[0].algo.data[0] = own<Preference>(preference).alignment;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    return has_algorithm ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void*, const void* a,
                              cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b, const void*,
                              const void*, cublasLtMatrixLayout_t, void* c, cublasLtMatrixLayout_t of_c,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
    if (!is_device_matrix(a, own<Matrix>(of_a), algorithm->data[0]) ||
        !is_device_matrix(b, own<Matrix>(of_b), algorithm->data[0]) ||
        !is_device_matrix(c, own<Matrix>(of_c), algorithm->data[0]) || !is_device_memory(workspace, workspace_bytes)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    submit(stream, [=, how = own<Product>(product), matrix_a = own<Matrix>(of_a), matrix_b = own<Matrix>(of_b),
                    matrix_c = own<Matrix>(of_c)] {
        std::memset(workspace, 0xff, workspace_bytes);
        multiply(how, static_cast<const float*>(a), matrix_a, static_cast<const float*>(b), matrix_b,
                 static_cast<float*>(c), matrix_c);
    });
    return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
