#include "finch/comm/version.hpp"

#include "finch/comm/mpi.hpp"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <system_error>

namespace finch::comm {
namespace {

/// True if Open MPI before version 5 has components for PMI-1 or PMI-2: in its libraries, or as files in a folder next
/// to the libraries. Debian installs the components in the second folder.
[[maybe_unused]] bool has_pmi_component() {
    Dl_info library{};
    const bool is_known = ::dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &library) != 0;
    const auto folder = std::filesystem::path(is_known ? library.dli_fname : "").parent_path();
    for (const std::string name : {"mca_pmix_s1", "mca_pmix_s2"}) {
        std::error_code none;
        if (::dlsym(RTLD_DEFAULT, (name + "_component").c_str()) != nullptr ||
            std::filesystem::exists(folder / "openmpi" / (name + ".so"), none) ||
            std::filesystem::exists(folder / "openmpi/lib/openmpi3" / (name + ".so"), none)) {
            return true;
        }
    }
    return !is_known;
}

}  // namespace

cluster::MpiStart mpi_start() {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
    return {.speaks_pmi = has_pmi_component(), .starts_alone_in_step = false};
#elif defined(OPEN_MPI)
    return {.speaks_pmi = false};
#else
    return {};
#endif
}

std::string launcher() {
    std::error_code none;
    return std::filesystem::exists(FINCH_MPIEXEC, none) ? FINCH_MPIEXEC : "the mpirun of Finch's own MPI";
}

MpiVersion mpi_version() {
    MpiVersion version;
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    FINCH_MPI(MPI_Get_library_version(text.data(), &length));
    version.library.assign(text.data(), static_cast<std::size_t>(length));
    version.library.resize(std::min(version.library.find_first_of(",\n"), version.library.size()));
    int threading = MPI_THREAD_SINGLE;
    FINCH_MPI(MPI_Query_thread(&threading));
    version.threading = threading == MPI_THREAD_MULTIPLE     ? "multiple"
                        : threading == MPI_THREAD_SERIALIZED ? "serialized"
                        : threading == MPI_THREAD_FUNNELED   ? "funneled"
                                                             : "single";
    version.ranks = size_of(MPI_COMM_WORLD);
    return version;
}

}  // namespace finch::comm
