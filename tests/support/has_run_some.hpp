#pragma once

#include "support/listener.hpp"

#include <cstdio>

/// Detects a test program that ran no test case, because its filters select none. Include this header only in the file
/// of main().
namespace finch::test {

inline unsigned& cases_run() {
    static unsigned count = 0;
    return count;
}

/// Returns whether a test case has run. Prints a message if none has.
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
