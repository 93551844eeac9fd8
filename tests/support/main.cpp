// The main() of all tests without MPI. It is compiled only once, because doctest's implementation takes seconds.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/has_run_some.hpp"

int main(int argc, char** argv) {
    doctest::Context context(argc, argv);
    const int code = context.run();
    return code == 0 && !context.shouldExit() && !finch::test::has_run_some() ? 1 : code;
}
