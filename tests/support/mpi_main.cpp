// The main() of every MPI test. A failure on any rank fails the run, and the output names the rank. If a test case
// hangs, an alarm ends the run after FINCH_TEST_SECONDS (default 900, for busy machines) and names the ranks.
#define DOCTEST_CONFIG_IMPLEMENT
#include "finch/comm/mpi.hpp"

#include "support/has_run_some.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <iostream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace {

int world_rank = 0;
char hang_text[512];  // formatted in advance: a signal handler must not format text

unsigned seconds_per_test_case() {
    const char* text = std::getenv("FINCH_TEST_SECONDS");
    return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 900U;
}

void watch(const char* test_case) {
    ::alarm(0);
    std::snprintf(hang_text, sizeof hang_text, "[rank %d] HANGS in: %s\n", world_rank, test_case);
    ::alarm(seconds_per_test_case());
}

extern "C" void finch_test_hangs(int) {
    (void)!::write(STDERR_FILENO, hang_text, std::strlen(hang_text));
    ::sleep(1);  // gives the other ranks time to print before the launcher ends them
    ::_exit(1);
}

/// Prints each failure immediately, with its rank: after a failure on one rank, other ranks often hang.
class RankReporter : public finch::test::Listener {
public:
    using Listener::Listener;

    void test_run_end(const doctest::TestRunStats&) override { watch("the end of the run"); }
    void test_case_start(const doctest::TestCaseData& data) override {
        name_ = data.m_name;
        watch(data.m_name);
    }
    void test_case_exception(const doctest::TestCaseException& exception) override {
        std::fprintf(stderr, "[rank %d] EXCEPTION in: %s\n    %s\n", world_rank, name_.c_str(),
                     exception.error_string.c_str());
    }
    void log_assert(const doctest::AssertData& data) override {
        if (!data.m_failed) {
            return;
        }
        std::ostringstream text;
        text << "[rank " << world_rank << "] FAILED in: " << name_ << "\n    " << data.m_file << ":" << data.m_line
             << ": " << data.m_expr << "\n    " << data.m_decomp.c_str();
        if (data.m_threw) {
            text << " threw " << data.m_exception.c_str();
        }
        for (int context = 0; context < get_num_active_contexts(); ++context) {
            text << "\n    with ";
            get_active_contexts()[context]->stringify(&text);
        }
        std::fprintf(stderr, "%s\n", text.str().c_str());
    }
    void log_message(const doctest::MessageData& data) override {
        if (world_rank == 0) {
            std::fprintf(stderr, "%s\n", data.m_string.c_str());
        }
    }

private:
    std::string name_;
};

REGISTER_LISTENER("ranks", 1, RankReporter);

}  // namespace

int main(int argc, char** argv) {
    const finch::comm::Session session(argc, argv);
    world_rank = session.world_rank();
    std::signal(SIGALRM, finch_test_hangs);
    watch("the start of the run");

    doctest::Context context(argc, argv);
    std::ostringstream quiet;
    if (world_rank != 0) {
        context.setCout(&quiet);
    }
    int result = context.run();
    if (result == 0 && !context.shouldExit() && !finch::test::has_run_some()) {
        result = 1;
    }

    int worst = 0;
    FINCH_MPI(MPI_Allreduce(&result, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    const auto results = finch::comm::gather_all(MPI_COMM_WORLD, std::to_string(result));
    if (world_rank == 0 && worst != 0) {
        for (std::size_t rank = 0; rank < results.size(); ++rank) {
            std::cout << "rank " << rank << (results[rank] == "0" ? ": passed\n" : ": FAILED\n");
        }
    }
    return worst;
}
