// For tests on a real device: skipped (77) where there is none.
#include "finch/backend/cuda.hpp"

#include "support/rehearsal/fibers.hpp"

#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>

namespace finch::rehearsal {

/// A GPU's threads come in the order that it likes.
void set_thread_order(ThreadOrder /*order*/) {}

}  // namespace finch::rehearsal

namespace {

class SkippedWithoutGpu : public doctest::IReporter {
public:
    explicit SkippedWithoutGpu(const doctest::ContextOptions&) {}

    void test_run_start() override {
        if (const std::string problem = finch::backend::cuda_versions().problem;
            finch::backend::cuda_device_count() == 0) {
            std::printf("skipped: no CUDA device (%s)\n", problem.c_str());
            std::fflush(stdout);
            std::_Exit(77);  // MPI's ranks too, whose sessions nobody ends then
        }
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("gpu", 0, SkippedWithoutGpu);

}  // namespace
