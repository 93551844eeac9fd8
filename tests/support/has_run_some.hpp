#pragma once

#include "support/listener.hpp"

#include <cstdio>

/// Included once, by a program's main(). A program whose filters leave no test case has tested nothing.
namespace finch::test {

inline unsigned& cases_run() {
    static unsigned count = 0;
    return count;
}

/// Says so where there were none.
inline bool has_run_some() {
    if (cases_run() == 0) {
        std::fprintf(stderr, "No test case was chosen.\n");
    }
    return cases_run() > 0;
}

class CaseCounter : public Listener {
public:
    using Listener::Listener;
    void test_run_end(const doctest::TestRunStats& stats) override { cases_run() = stats.numTestCasesPassingFilters; }
};

REGISTER_LISTENER("cases", 2, CaseCounter);

}  // namespace finch::test
