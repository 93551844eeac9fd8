#pragma once

#include "finch/backend/cuda.hpp"
#include "finch/backend/device.hpp"
#include "finch/cluster/machine.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/comm/version.hpp"
#include "finch/store/file_system.hpp"

#include <map>
#include <string>
#include <vector>

/// `finch doctor`: what is here, and what `finch evolve` would refuse.
namespace finch::app {

/// Facts of one rank and its node.
struct RankFacts {
    std::string program;  ///< Finch's version and how it was built
    std::string node;
    cluster::Machine machine;
    std::int64_t cpu_seconds = 0;  ///< ulimit -t; 0: no limit
    backend::CudaVersions cuda;
    std::vector<backend::DeviceDescription> devices;  ///< visible to this rank
    std::string energy_of_cpus;                       ///< "measured", or why not
    std::vector<std::string> energy_of_gpus;          ///< of each device
    std::map<std::string, std::string> variables;     ///< environment variables that influence a run
    store::FileSystem file_system;                    ///< of the working directory
    bool operator==(const RankFacts&) const = default;
};

/// The facts of all ranks, gathered on world rank 0.
struct Facts {
    std::vector<RankFacts> ranks;  ///< by world rank
    std::string architectures;     ///< GPU architectures of the CUDA backend in CMake's notation: "80-real 90"
    comm::MpiVersion mpi;
    comm::NcclVersion nccl;
};

struct Problem {
    bool stops = false;  ///< a run does not start, or does not use the existing GPUs
    std::string what;    ///< with the remedy
};

/// Returns all problems. Problems that stop a run come first. A pure function.
[[nodiscard]] std::vector<Problem> find_problems(const Facts& facts);

/// True if a program built for `architectures` (CMake's notation, "80-real 90") has code for a device of compute
/// capability `capability` (90: Hopper). Machine code must be for the same major version and the same or a lower minor
/// version. PTX (no "-real") may be for the same or any lower version.
[[nodiscard]] bool has_code_for(const std::string& architectures, int capability);

/// Returns the text to print: the facts, then the problems.
[[nodiscard]] std::string describe(const Facts& facts, const std::vector<Problem>& problems);

/// Converts a version number of CUDA to text: 13020 → "13.2", 0 → "none".
[[nodiscard]] std::string cuda_version(int version);

/// Collective over the world. Prints the facts of this machine and its problems. Returns 1 if a problem stops a run,
/// otherwise 0; the same on every rank.
[[nodiscard]] int doctor(const comm::Session& session);

}  // namespace finch::app
