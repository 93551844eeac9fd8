#include "fork_server.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

/// finch-launcher SOCKET CALLER: the fork server of a Launcher as a separate small program, because a small process
/// forks faster.
int main(int count, char** arguments) {
    if (count != 3) {
        std::fputs("finch-launcher is started by finch, to start other programs.\n", stderr);
        return 2;
    }
    finch::process::run_fork_server(finch::FileDescriptor(std::atoi(arguments[1])), std::atoi(arguments[2]));
}
