#include "finch/app/launch.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/cluster/end_notes.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/comm/version.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/startup.hpp"

#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace finch::app {
namespace {

/// Sets a deadline for MPI_Init, which waits forever if a rank never arrives.
void watch_start(const cluster::Environment& environment) {
    const double seconds = run::hang_for_test("init", run::start_seconds());
    const auto ranks = cluster::ranks_expected(environment);
    cluster::watch(
        fmt::format("finch: a process on {}: MPI_Init did not end within {} s (FINCH_START_SECONDS): {} ranks "
                    "were expected, and one of them never reached it",
                    cluster::host_name(), seconds, ranks ? std::to_string(*ranks) : "all"),
        seconds);
}

/// Returns `code`, or exit_fault if printed text was lost. If standard output is closed, no text counts as lost.
int after_output(int code) {
    const bool is_lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
    if (!is_lost || ::fcntl(STDOUT_FILENO, F_GETFD) == -1) {
        return code;
    }
    complain("standard output could not be written, so part of it is missing; is its disk full?");
    return exit_fault;
}

/// True on the first rank of the launcher, and without a launcher. MPI_Init may set variables of its own world.
bool is_first_rank() {
    return cluster::rank_before_mpi(cluster::Environment::at_start()) == 0;
}

}  // namespace

int alone(const std::function<int()>& verb) {
    try {
        cluster::release_signals();
        set_up_log({}, 0, true);
        return after_output(verb());
    } catch (const ConfigError& error) {
        complain(error.what());
        return exit_input;
    } catch (const std::exception& error) {
        complain(error.what());
        return exit_fault;
    }
}

int on_first_rank(const std::function<int()>& verb) {
    return is_first_rank() ? alone(verb) : exit_done;
}

int refuse(const std::string& problem, int code) {
    if (!is_first_rank()) {
        return exit_done;
    }
    complain(problem);
    return code;
}

int on_all_ranks(int argc, char** argv, const std::function<int(comm::Session&)>& verb, BadLaunch bad_launch) {
    const cluster::Environment environment = cluster::Environment::of_this_process();
    const cluster::MpiStart mpi = comm::mpi_start();
    const auto problem = cluster::launch_problem(environment, mpi);
    const bool has_mpi = mpi.starts_alone_in_step || !environment.text("SLURM_STEP_ID");  // can report the problem
    if (problem && (bad_launch == BadLaunch::refuse || !has_mpi)) {
        return refuse(*problem);
    }
    watch_start(environment);
    comm::Session session(argc, argv);
    if (const auto separate = cluster::launch_problem(environment, session.world_size(), comm::launcher());
        separate && bad_launch == BadLaunch::refuse) {
        return refuse(*separate);
    }
    int code = exit_fault;
    const auto complain_once = [&session](const std::exception& error) {
        if (session.world_rank() == 0) {
            LiveLine::clear();
            complain(error.what());
        }
    };
    try {
        set_up_log({}, session.world_rank(), session.world_rank() == 0);
        code = verb(session);
        code = session.world_rank() == 0 && code == exit_done ? after_output(code) : code;
    } catch (const ConfigError& error) {
        complain_once(error);
        code = exit_input;
    } catch (const run::SharedError& error) {
        complain_once(error);
    } catch (const std::exception& error) {
        cluster::note_end(cluster::ExitCause::external);  // a training's own fault was noted before
        complain(fmt::format("rank {}: {}", session.world_rank(), error.what()));
        std::fflush(nullptr);
        MPI_Abort(MPI_COMM_WORLD, exit_fault);
    }
    return session.world_rank() == 0 ? code : 0;
}

}  // namespace finch::app
