#include "finch/process/launcher.hpp"

#include "process/support.hpp"

#include <csignal>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::process;
using namespace finch::testing;

TEST_CASE("ended: the exit code or the signal of the program") {
    Launcher launcher = Launcher::fork();
    Child good = launcher.start(program({"true"}));
    Child bad = launcher.start(shell("exit 3"));
    Child fault = launcher.start(shell("kill -SEGV $$"));

    CHECK(finish(good) == Ended{});
    CHECK(finish(bad) == Ended{3, 0, ""});
    CHECK(finish(fault) == Ended{0, SIGSEGV, ""});
}
