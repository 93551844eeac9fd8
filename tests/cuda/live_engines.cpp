// Compares cuDNN's choices on the GPU of this machine with the table for its architecture (tests/cuda/engines.txt).
#include "finch/backend/cuda_runtime.hpp"

#include "cuda/engine_table.hpp"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::engine_table;

/// Differences are printed and are no failure: another card of an architecture may prefer another engine.
TEST_CASE("cuDNN's engines on this GPU") {
    int major = 0;
    FINCH_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    const std::map<int, std::string> names{{8, "A100"}, {9, "H100"}, {10, "B200"}};
    const auto name = names.find(major);
    if (name == names.end()) {
        MESSAGE("there is no table for compute capability " << major);
        return;
    }
    const Table table = read_table();
    Libraries libraries;
    const Rows rows = rows_of(libraries, name->second, [](const auto&, const auto&) {});
    std::size_t differences = 0;
    for (const auto& [key, row] : rows) {
        const auto known = table.rows.find(key);
        if (known == table.rows.end() || known->second != row) {
            ++differences;
            MESSAGE(key << " = " << row << ", in the table "
                        << (known == table.rows.end() ? "nothing" : known->second));
        }
    }
    MESSAGE(differences << " of " << rows.size() << " rows differ from the table");
    CHECK(rows.size() >= shapes().size() * precisions.size());
}
