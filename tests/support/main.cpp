// The main() of every test without MPI, compiled once: doctest's implementation takes seconds.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
