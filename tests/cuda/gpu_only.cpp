// For tests on a real device: skipped (77) where there is none.
#include "finch/backend/cuda.hpp"

#include "support/listener.hpp"
#include "support/rehearsal/fibers.hpp"

#include <cstdio>
#include <cstdlib>

namespace finch::rehearsal {

/// A GPU's threads come in the order that it likes.
void set_thread_order(ThreadOrder /*order*/) {}

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
            std::_Exit(77);  // MPI's ranks too, whose sessions nobody ends then
        }
    }
};

REGISTER_LISTENER("gpu", 0, SkippedWithoutGpu);

}  // namespace
