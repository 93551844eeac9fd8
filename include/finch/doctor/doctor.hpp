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

/// Facts about a machine.
namespace finch::doctor {

/// Whether counters of energy can be read: "measured", or why not.
struct EnergyFacts {
    std::string cpus;
    bool is_closed = false;  ///< of CPUs: there are counters, which this user may not read
    std::vector<std::string> gpus;
    bool operator==(const EnergyFacts&) const = default;
};

/// Facts of one rank and its node.
struct RankFacts {
    std::string program;  ///< Finch's version and how it was built
    std::string node;
    cluster::Machine machine;
    backend::CudaVersions cuda;
    std::vector<backend::DeviceDescription> devices;  ///< that it sees
    EnergyFacts energy;
    std::map<std::string, std::string> variables;  ///< of the environment, those that matter
    store::FileSystem file_system;                 ///< of the working directory
    bool operator==(const RankFacts&) const = default;
};

/// A data set that a configuration asks for.
struct DataFacts {
    std::string config;  ///< the configuration's path
    std::string found;   ///< "60000 images of 28x28x1 in data/mnist"; empty if `problem` has something to say
    std::string problem;
};

/// Everything, as world rank 0 knows it.
struct Facts {
    std::vector<RankFacts> ranks;  ///< by world rank
    std::string architectures;     ///< GPUs that the CUDA backend was built for, as CMake names them: "80-real 90"
    comm::MpiVersion mpi;
    comm::NcclVersion nccl;
    std::string hdf5;
    std::string onednn;
    std::vector<DataFacts> data;
};

/// Open MPI sets it to "singleton" in a process that no launcher started; it sets the variables of PMIx there, too.
inline constexpr const char* singleton_variable = "OMPI_MCA_ess";

/// Problems of a machine, and how to mend them.
struct Problem {
    bool stops = false;  ///< a run with the defaults does not start, or not on the GPUs that are there
    std::string what;
    std::string mend;
    bool operator==(const Problem&) const = default;
};

/// Everything that is wrong, what stops a run first. A pure function.
[[nodiscard]] std::vector<Problem> find_problems(const Facts& facts);

/// Whether a program built for `architectures` ("80-real 90": CMake's names) has code for a device of `capability`
/// (90: Hopper): machine code of the same major version and no later minor one, or PTX (no "-real") of any earlier one.
[[nodiscard]] bool has_code_for(const std::string& architectures, int capability);

/// The printed text: the facts, then the problems. A pure function.
[[nodiscard]] std::string describe(const Facts& facts, const std::vector<Problem>& problems);

/// 13020 → "13.2"; "none" of 0.
[[nodiscard]] std::string cuda_version(int version);

/// `finch doctor`: what Finch finds on this machine, what is wrong with it, and how to mend it.
/// Collective over the world. World rank 0 prints; the others tell it what they find. Returns 0 if nothing stops a
/// run, 1 otherwise, the same on every rank.
[[nodiscard]] int examine(const comm::Session& session);

}  // namespace finch::doctor
