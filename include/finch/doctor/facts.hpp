#pragma once

#include "finch/backend/cuda.hpp"
#include "finch/backend/version.hpp"
#include "finch/cluster/machine.hpp"
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

}  // namespace finch::doctor
