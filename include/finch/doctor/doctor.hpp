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

/// The diagnosis of a machine: facts, problems and remedies.
namespace finch::doctor {

/// Availability of the energy counters: "measured", or the reason why a counter cannot be read.
struct EnergyFacts {
    std::string cpus;
    bool is_closed = false;  ///< the CPUs have counters, but this user may not read them
    std::vector<std::string> gpus;
    bool operator==(const EnergyFacts&) const = default;
};

/// Facts of one rank and its node.
struct RankFacts {
    std::string program;  ///< Finch's version and how it was built
    std::string node;
    cluster::Machine machine;
    backend::CudaVersions cuda;
    std::vector<backend::DeviceDescription> devices;  ///< visible to this rank
    EnergyFacts energy;
    std::map<std::string, std::string> variables;  ///< the relevant environment variables
    store::FileSystem file_system;                 ///< of the working directory
    std::int64_t cpu_seconds = 0;                  ///< ulimit -t; 0: no limit
    bool operator==(const RankFacts&) const = default;
};

/// A data set that a configuration needs.
struct DataFacts {
    std::string config;  ///< the configuration's path
    std::string found;   ///< "60000 images of 28x28x1 in data/mnist"; empty if there is a problem
    std::string problem;
};

/// The facts of all ranks, gathered on world rank 0.
struct Facts {
    std::vector<RankFacts> ranks;  ///< by world rank
    std::string architectures;     ///< GPU architectures of the CUDA backend in CMake's notation: "80-real 90"
    comm::MpiVersion mpi;
    comm::NcclVersion nccl;
    std::string hdf5;
    std::string onednn;
    std::vector<DataFacts> data;
};

/// An environment variable. Open MPI sets it to "singleton" in a process that no launcher started. Open MPI also sets
/// the PMIx variables in that process.
inline constexpr const char* singleton_variable = "OMPI_MCA_ess";

/// A problem of a machine and its remedy.
struct Problem {
    bool stops = false;  ///< a run with default settings does not start, or does not use the existing GPUs
    std::string what;
    std::string mend;
    bool operator==(const Problem&) const = default;
};

/// Returns all problems. Problems that stop a run come first. A pure function.
[[nodiscard]] std::vector<Problem> find_problems(const Facts& facts);

/// True if a program built for `architectures` (CMake's notation, "80-real 90") has code for a device of compute
/// capability `capability` (90: Hopper). Machine code must be for the same major version and the same or a lower minor
/// version. PTX (no "-real") may be for the same or any lower version.
[[nodiscard]] bool has_code_for(const std::string& architectures, int capability);

/// Returns the text to print: the facts, then the problems. A pure function.
[[nodiscard]] std::string describe(const Facts& facts, const std::vector<Problem>& problems);

/// Converts a version number of CUDA to text: 13020 → "13.2", 0 → "none".
[[nodiscard]] std::string cuda_version(int version);

/// Collective over the world. Implements `finch doctor`: examines this machine and prints facts, problems and remedies.
/// All ranks send their facts to world rank 0, which prints. Returns 1 if a problem stops a run, otherwise 0; the same
/// on every rank.
[[nodiscard]] int examine(const comm::Session& session);

}  // namespace finch::doctor
