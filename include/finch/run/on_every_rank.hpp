#pragma once

#include "finch/base/error.hpp"
#include "finch/comm/mpi.hpp"

#include <functional>
#include <string>

namespace finch::run {

/// An error that on_rank_zero() or on_every_rank() throws on all ranks alike. on_all_ranks() (app/launch.hpp) prints
/// it once, from rank 0.
class SharedError : public Error {
public:
    using Error::Error;
};

/// Collective over `world`. Runs `work` on world rank 0 and returns its text on all ranks. If `work` throws a
/// ConfigError or a StorageError, every rank throws an equal exception; for other Errors, a SharedError. All ranks then
/// end in the same way. on_all_ranks() (app/launch.hpp) prints a ConfigError or SharedError once, from rank 0.
[[nodiscard]] std::string on_rank_zero(MPI_Comm world, const std::function<std::string()>& work);

/// Collective over `world`. Runs `work` on every rank. If `work` throws on any rank, all ranks throw the exception of
/// the lowest failed rank.
void on_every_rank(MPI_Comm world, const std::function<void()>& work);

}  // namespace finch::run
