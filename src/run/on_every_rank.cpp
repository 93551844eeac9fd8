#include "finch/run/on_every_rank.hpp"

#include "finch/base/files.hpp"
#include "finch/comm/mpi.hpp"

#include <filesystem>

namespace finch::run {
namespace {

enum class Kind : char { fine = '0', config = '1', storage = '2', other = '3' };

/// Runs `work` and returns a text to send: a letter for the outcome, then the result or the message of the exception.
std::string attempt(const std::function<std::string()>& work) {
    try {
        return static_cast<char>(Kind::fine) + work();
    } catch (const ConfigError& error) {
        return static_cast<char>(Kind::config) + std::string(error.what());
    } catch (const StorageError& error) {
        return static_cast<char>(Kind::storage) + std::string(error.what());
    } catch (const std::filesystem::filesystem_error& error) {
        const bool fails = is_storage_failure_of_users_path(error.code().value());
        return static_cast<char>(fails ? Kind::storage : Kind::config) + std::string(error.what());
    } catch (const Error& error) {
        return static_cast<char>(Kind::other) + std::string(error.what());
    }
}

std::string unwrap(const std::string& told) {
    switch (static_cast<Kind>(told.front())) {
        case Kind::config:
            throw ConfigError(told.substr(1));
        case Kind::storage:
            throw StorageError(told.substr(1));
        case Kind::other:
            throw SharedError(told.substr(1));
        case Kind::fine:
            break;
    }
    return told.substr(1);
}

}  // namespace

std::string on_rank_zero(MPI_Comm world, const std::function<std::string()>& work) {
    return unwrap(comm::broadcast(world, comm::rank_of(world) == 0 ? attempt(work) : std::string()));
}

void on_every_rank(MPI_Comm world, const std::function<void()>& work) {
    const std::string mine = attempt([&] {
        work();
        return std::string();
    });
    for (const std::string& told : comm::gather_all(world, mine)) {
        static_cast<void>(unwrap(told));
    }
}

}  // namespace finch::run
