// For test programs that need a real GPU: without a GPU the program is skipped (exit code 77).
#include "finch/backend/cuda.hpp"

#include "support/listener.hpp"
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/fibers.hpp"

#include <cstdio>
#include <cstdlib>

namespace finch::rehearsal {

/// Does nothing: on a GPU the hardware determines the order of threads.
void set_thread_order(ThreadOrder /*order*/) {}

/// Does nothing: the number of multiprocessors of a GPU is fixed.
void set_multiprocessors(int /*count*/) {}

}  // namespace finch::rehearsal

namespace {

class SkippedWithoutGpu : public finch::test::Listener {
public:
    using Listener::Listener;
    void test_run_start() override {
        if (const std::string problem = finch::backend::cuda_versions().problem;
            finch::backend::cuda_device_count() == 0) {
            std::printf("skipped: no CUDA device (%s)\n", problem.c_str());
            std::fflush(stdout);
            std::_Exit(77);  // MPI ranks do not end their MPI sessions here
        }
    }
};

REGISTER_LISTENER("gpu", 0, SkippedWithoutGpu);

}  // namespace
